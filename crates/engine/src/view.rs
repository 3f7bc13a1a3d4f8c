//! What a transaction sees: a snapshot with its own writes laid over it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use espalier_kv::{Bytes, Direction, Entry, Lookup, Scan, Snapshot};
use espalier_value::Result;

use crate::error::kv;

/// Own writes not committed yet: the value, or `None` for a delete.
pub type Overlay = BTreeMap<Vec<u8>, Option<Arc<[u8]>>>;

#[derive(Clone)]
pub struct View {
    snapshot: Snapshot,
    overlay: Arc<Overlay>,
}

/// A value read through a view.
pub enum Lent {
    Stored(Bytes),
    Own(Arc<[u8]>),
}

impl std::ops::Deref for Lent {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Lent::Stored(bytes) => bytes,
            Lent::Own(bytes) => bytes,
        }
    }
}

impl View {
    pub fn new(snapshot: Snapshot) -> View {
        View { snapshot, overlay: Arc::default() }
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Lays further writes over what it shows.
    pub fn lay<'e>(&mut self, entries: impl Iterator<Item = Entry<'e>>) {
        let overlay = Arc::make_mut(&mut self.overlay);
        for entry in entries {
            match entry {
                Entry::Put { key, value } => overlay.insert(key.to_vec(), Some(value.into())),
                Entry::Delete { key } => overlay.insert(key.to_vec(), None),
                // No transaction drops one.
                Entry::DropTree { .. } => None,
            };
        }
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<Lent>> {
        if !self.overlay.is_empty()
            && let Some(own) = self.overlay.get(key)
        {
            return Ok(own.clone().map(Lent::Own));
        }
        Ok(self.snapshot.get(key).map_err(kv)?.map(Lent::Stored))
    }

    /// For many [`View::get`]s of keys from `low` up to and without `high`, which are of one tree.
    pub fn lookup(&self, low: &[u8], high: &[u8]) -> ViewLookup {
        ViewLookup { stored: self.snapshot.lookup(low, high), overlay: self.overlay.clone(), own: None }
    }

    pub fn scan(&self, low: &[u8], high: &[u8], reverse: bool) -> Result<ViewScan> {
        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
        let stored = self.snapshot.scan(Bound::Included(low), Bound::Excluded(high), direction).map_err(kv)?;
        let own = (!self.overlay.is_empty()).then(|| Own {
            overlay: self.overlay.clone(),
            low: low.to_vec(),
            high: high.to_vec(),
            at: None,
            ended: false,
        });
        Ok(ViewScan {
            stored,
            own,
            reverse,
            state: State::Start,
            stored_valid: false,
            deleted: 0,
            deleted_max: u64::MAX,
        })
    }
}

/// Looks up many keys of a view, one after the other.
pub struct ViewLookup {
    stored: Lookup,
    overlay: Arc<Overlay>,
    /// An own write, if the last key has one: the value, or `None` for a delete.
    own: Option<Option<Arc<[u8]>>>,
}

impl ViewLookup {
    /// Whether there is such a key; [`ViewLookup::value`] then lends what it has.
    #[inline]
    pub fn find(&mut self, key: &[u8]) -> Result<bool> {
        if !self.overlay.is_empty() {
            self.own = self.overlay.get(key).cloned();
            if let Some(own) = &self.own {
                return Ok(own.is_some());
            }
        }
        Ok(self.stored.get(key).map_err(kv)?.is_some())
    }

    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        match &self.own {
            Some(own) => own.as_deref(),
            None => self.stored.value(),
        }
    }
}

/// A cursor over a range of a view.
pub struct ViewScan {
    stored: Scan,
    own: Option<Own>,
    reverse: bool,
    state: State,
    /// Whether the store's side stands on an entry.
    stored_valid: bool,
    /// Own deletes that it has passed, and how many it passes at most.
    deleted: u64,
    deleted_max: u64,
}

/// Where the two sides of the merge stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    /// The entry under the cursor is the store's; the own side stands on a later one.
    Stored,
    /// The entry under the cursor is an own write; the flag says the store stands on the same key.
    Own {
        shadows: bool,
    },
    End,
}

struct Own {
    overlay: Arc<Overlay>,
    low: Vec<u8>,
    high: Vec<u8>,
    at: Option<OwnEntry>,
    ended: bool,
}

impl Own {
    fn step(&mut self, reverse: bool) {
        let range = match (&self.at, reverse) {
            (None, _) => (Bound::Included(self.low.as_slice()), Bound::Excluded(self.high.as_slice())),
            (Some((at, _)), false) => (Bound::Excluded(at.as_slice()), Bound::Excluded(self.high.as_slice())),
            (Some((at, _)), true) => (Bound::Included(self.low.as_slice()), Bound::Excluded(at.as_slice())),
        };
        self.at = nearest(&self.overlay, range, reverse);
        self.ended = self.at.is_none();
    }

    fn seek(&mut self, key: &[u8], reverse: bool) {
        let (low, high) = (self.low.as_slice(), self.high.as_slice());
        let range = match reverse {
            false => (Bound::Included(key.max(low)), Bound::Excluded(high)),
            true if key >= high => (Bound::Included(low), Bound::Excluded(high)),
            true => (Bound::Included(low), Bound::Included(key)),
        };
        self.at = nearest(&self.overlay, range, reverse);
        self.ended = self.at.is_none();
    }
}

type OwnEntry = (Vec<u8>, Option<Arc<[u8]>>);

/// The first entry of a range in the direction of the scan.
fn nearest(overlay: &Overlay, range: (Bound<&[u8]>, Bound<&[u8]>), reverse: bool) -> Option<OwnEntry> {
    // A map refuses a range that is upside down.
    if let (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) = range
        && low >= high
        && !matches!(range, (Bound::Included(_), Bound::Included(_)) if low == high)
    {
        return None;
    }
    let mut found = overlay.range::<[u8], _>(range);
    let entry = if reverse { found.next_back() } else { found.next() };
    entry.map(|(k, v)| (k.clone(), v.clone()))
}

impl ViewScan {
    /// Lets it end early: after so many deleted entries.
    pub fn pass_at_most(&mut self, deleted: u64) {
        self.stored.pass_at_most(deleted);
        self.deleted_max = deleted;
    }

    /// The deleted entries that it has passed.
    pub fn deleted(&self) -> u64 {
        self.stored.deleted() + self.deleted
    }

    /// Moves to the next entry; false at the end.
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        let Some(own) = &mut self.own else { return self.stored.next().map_err(kv) };
        let (step_stored, step_own) = match self.state {
            State::End => return Ok(false),
            State::Start => (true, true),
            State::Stored => (true, false),
            State::Own { shadows } => (shadows, true),
        };
        if step_own && !own.ended {
            own.step(self.reverse);
        }
        if step_stored {
            self.stored_valid = self.stored.next().map_err(kv)?;
        }
        self.settle()
    }

    /// Moves to the first entry at or past `key` in the direction of the scan; false if there is none.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.stored_valid = self.stored.seek(key).map_err(kv)?;
        let Some(own) = &mut self.own else { return Ok(self.stored_valid) };
        own.seek(key, self.reverse);
        self.settle()
    }

    /// Decides which side the entry under the cursor comes from, passing over deleted ones.
    fn settle(&mut self) -> Result<bool> {
        loop {
            let Some(own) = &mut self.own else { return Ok(self.stored_valid) };
            let order = match (&own.at, self.stored_valid) {
                (None, false) => {
                    self.state = State::End;
                    return Ok(false);
                }
                (None, true) => Ordering::Less,
                (Some(_), false) => Ordering::Greater,
                (Some((key, _)), true) => {
                    let order = self.stored.key().cmp(key.as_slice());
                    if self.reverse { order.reverse() } else { order }
                }
            };
            if order.is_lt() {
                self.state = State::Stored;
                return Ok(true);
            }
            if own.at.as_ref().is_some_and(|(_, value)| value.is_some()) {
                self.state = State::Own { shadows: order.is_eq() };
                return Ok(true);
            }
            if self.deleted >= self.deleted_max {
                self.state = State::End;
                return Ok(false);
            }
            self.deleted += 1;
            own.step(self.reverse);
            if order.is_eq() {
                self.stored_valid = self.stored.next().map_err(kv)?;
            }
        }
    }

    #[inline]
    pub fn key(&self) -> &[u8] {
        match (&self.state, &self.own) {
            (State::Own { .. }, Some(Own { at: Some((key, _)), .. })) => key,
            _ => self.stored.key(),
        }
    }

    #[inline]
    pub fn value(&self) -> &[u8] {
        match (&self.state, &self.own) {
            (State::Own { .. }, Some(Own { at: Some((_, Some(value))), .. })) => value,
            _ => self.stored.value(),
        }
    }
}
