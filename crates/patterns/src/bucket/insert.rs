//! Inserting readings: those of one command that belong together go into their bucket with one write.

use std::collections::{HashMap, HashSet};

use espalier_store::{Insert, Inserted, Namespace, Transaction};
use espalier_value::{RawDoc, Result, key};

use super::Bucket;
use super::reading::Group;
use crate::bson::id_of;
use crate::validator::Validator;

/// The readings of one group that a command brings.
#[derive(Default)]
struct Arriving<'d> {
    /// All of them, also those that are not taken in the end.
    all: Vec<RawDoc<'d>>,
    accepted: Vec<RawDoc<'d>>,
    keys: HashSet<Vec<u8>>,
}

impl Bucket {
    pub(super) fn insert_all(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
        how: &Insert,
    ) -> Result<Inserted> {
        let mut ids = self.taken_ids(tx, ns, docs)?;
        let validator = if how.bypass_validation { None } else { Validator::of(tx, ns)? };
        let mut groups: Vec<Arriving<'_>> = Vec::new();
        let mut places: HashMap<Group, usize> = HashMap::new();
        let mut belongs = Vec::with_capacity(docs.len());
        for doc in docs {
            belongs.push(self.group(*doc).map(|group| {
                let at = *places.entry(group).or_insert_with(|| {
                    groups.push(Arriving::default());
                    groups.len() - 1
                });
                groups[at].all.push(*doc);
                at
            }));
        }
        if !self.key.is_empty() {
            for group in &mut groups {
                group.keys = self.taken_keys(tx, ns, &group.all, None)?;
            }
        }
        let mut out = Inserted::default();
        for (at, (doc, belongs)) in docs.iter().zip(belongs).enumerate() {
            let accepted = belongs.and_then(|belongs| {
                let id = key::of(id_of(*doc));
                if ids.contains(&id) {
                    return Err(self.duplicate_id(ns, id_of(*doc)));
                }
                if let Some(validator) = &validator {
                    validator.check(*doc, None, &how.context)?;
                }
                let group = &mut groups[belongs];
                if !self.key.is_empty() && !group.keys.insert(self.key_of(*doc)) {
                    return Err(self.duplicate_key(ns, *doc));
                }
                group.accepted.push(*doc);
                ids.insert(id);
                Ok(())
            });
            match accepted {
                Ok(()) => out.inserted += 1,
                Err(error) => {
                    out.errors.push((at, error));
                    if how.ordered {
                        break;
                    }
                }
            }
        }
        for group in &groups {
            self.fill(tx, ns, &group.accepted, &how.context)?;
        }
        Ok(out)
    }
}
