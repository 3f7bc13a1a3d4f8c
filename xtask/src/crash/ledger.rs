//! What one connection knows of the documents it alone writes: which exist and what they hold.
//!
//! Writes that were sent and are not yet known to be on disk are kept in the order in which they commit. After a restart
//! a prefix of them may have happened, and nothing else: not the second without the first, and never a part of one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use super::problems::Problems;

/// Numbers of `_id`s that belong to one writer.
const IDS_BITS: u32 = 40;

/// A connection's memory, which outlives the server.
#[derive(Debug)]
pub struct Ledger<T> {
    /// What is certainly there.
    pub known: BTreeMap<i64, T>,
    /// What was sent since, in order: the state that the document will have; `None` is deleted.
    flying: Vec<(i64, Option<T>)>,
    pub acknowledged: u64,
    next_id: i64,
}

impl<T: Clone + PartialEq + Debug> Ledger<T> {
    /// The ledger of the nth writer of a collection.
    pub fn new(writer: u64) -> Ledger<T> {
        let next_id = first_id(writer);
        Ledger { known: BTreeMap::new(), flying: Vec::new(), acknowledged: 0, next_id }
    }

    pub fn fresh_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// Remembers a write that is about to be sent.
    pub fn send(&mut self, id: i64, state: Option<T>) {
        self.flying.push((id, state));
    }

    /// Everything that was sent is on disk.
    pub fn acknowledge(&mut self) {
        for (id, state) in std::mem::take(&mut self.flying) {
            self.acknowledged += 1;
            put(&mut self.known, id, state);
        }
    }

    /// What was sent was refused, and none of it happened.
    pub fn refuse(&mut self) {
        self.flying.clear();
    }

    pub fn in_flight(&self) -> usize {
        self.flying.len()
    }

    /// A document as it is once all that was sent has happened.
    pub fn latest(&self, id: i64) -> Option<T> {
        let sent = self.flying.iter().rev().find(|(other, _)| *other == id);
        sent.map_or_else(|| self.known.get(&id).cloned(), |(_, state)| state.clone())
    }

    /// A document that exists: the first at or after a random place.
    pub fn any(&self, random: &mut crate::random::Random) -> Option<(i64, T)> {
        let (first, last) = (*self.known.first_key_value()?.0, *self.known.last_key_value()?.0);
        self.known.range(random.between(first, last)..).next().map(|(id, state)| (*id, state.clone()))
    }

    /// Compares with what was found after a restart; from now on that is what is known.
    pub fn judge(&mut self, collection: &str, found: BTreeMap<i64, T>, problems: &mut Problems) {
        let ids: BTreeSet<i64> =
            found.keys().chain(self.known.keys()).chain(self.flying.iter().map(|(id, _)| id)).copied().collect();
        problems.checked += ids.len() as u64;
        let mut now = self.known.clone();
        let mut wrong: BTreeSet<i64> = ids.into_iter().filter(|id| now.get(id) != found.get(id)).collect();
        let mut fewest = wrong.clone();
        for (id, state) in &self.flying {
            if wrong.is_empty() {
                break;
            }
            put(&mut now, *id, state.clone());
            if now.get(id) == found.get(id) {
                wrong.remove(id);
            } else {
                wrong.insert(*id);
            }
            if wrong.len() < fewest.len() {
                fewest.clone_from(&wrong);
            }
        }
        if !wrong.is_empty() {
            for id in fewest {
                let sent: Vec<_> = self.flying.iter().filter(|(other, _)| *other == id).map(|(_, s)| s).collect();
                let (known, found) = (self.known.get(&id), found.get(&id));
                problems.add(format!("{collection} {id}: acknowledged {known:?}, in flight {sent:?}, found {found:?}"));
            }
        }
        self.known = found;
        self.flying.clear();
    }
}

/// The number from which a writer counts its `_id`s, up to that of the next writer.
pub fn first_id(writer: u64) -> i64 {
    (writer as i64 + 1) << IDS_BITS
}

fn put<T>(map: &mut BTreeMap<i64, T>, id: i64, state: Option<T>) {
    match state {
        Some(state) => map.insert(id, state),
        None => map.remove(&id),
    };
}
