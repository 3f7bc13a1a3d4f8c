//! Updating and deleting many readings: each bucket is rewritten once.

use std::collections::HashSet;

use espalier_query::update::{Apply, Description};
use espalier_store::{Delete, Namespace, Transaction, Update};
use espalier_value::{ArrayBuf, DocBuf, Result, Value, key};

use super::Bucket;
use super::stored::Entry;
use crate::bson::id_of;
use crate::layout::{Done, Written};
use crate::stored::{filter, query};
use crate::validator::Validator;

impl Bucket {
    /// The buckets that hold these readings.
    fn holding(
        &self,
        tx: &dyn Transaction,
        ns: &Namespace,
        ids: &[Value<'static>],
    ) -> Result<Box<dyn espalier_store::Cursor>> {
        let list: ArrayBuf = ids.iter().map(Value::or_null).collect();
        let mut condition = DocBuf::new();
        condition.append_doc(&self.item_path("_id"), |doc| {
            doc.append("$in", &list);
        });
        tx.find(&self.buckets(ns), &query(filter(&condition)?))
    }

    pub(super) fn delete_many(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        ids: &[Value<'static>],
        how: &Delete,
    ) -> Result<Vec<Value<'static>>> {
        let mut wanted: HashSet<Vec<u8>> = ids.iter().map(|id| key::of(id.or_null())).collect();
        let mut gone = Vec::new();
        let mut buckets = self.holding(tx, ns, ids)?;
        while buckets.advance()? {
            how.context.interrupt.check()?;
            let stored = buckets.doc();
            let mut kept = Vec::new();
            for entry in self.entries(stored) {
                if wanted.remove(&key::of(id_of(entry.doc())))
                    && how.filter.matches(self.reading(stored, entry).as_raw(), &how.context)?
                {
                    gone.push(Value::own(id_of(entry.doc())));
                } else {
                    kept.push(entry);
                }
            }
            if kept.len() < self.items_of(stored).len() {
                self.rewrite(tx, ns, stored, &kept)?;
            }
        }
        // What no bucket holds is a plain document of a migration, or gone.
        for id in ids.iter().filter(|id| wanted.contains(&key::of(id.or_null()))) {
            if self.delete(tx, ns, id.or_null(), how)?.is_some() {
                gone.push(id.clone());
            }
        }
        Ok(gone)
    }

    /// What was done, and the `_id`s of the readings that may have to leave their bucket, or are in none.
    pub(super) fn update_many(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        ids: &[Value<'static>],
        update: &Update,
    ) -> Result<(Vec<Done>, Vec<Value<'static>>)> {
        let mut wanted: HashSet<Vec<u8>> = ids.iter().map(|id| key::of(id.or_null())).collect();
        let validator = if update.bypass_validation { None } else { Validator::of(tx, ns)? };
        let mut done = Vec::new();
        let mut buckets = self.holding(tx, ns, ids)?;
        while buckets.advance()? {
            update.context.interrupt.check()?;
            let stored = buckets.doc();
            let mut entries = self.entries(stored);
            let mut unchanged = Vec::new();
            let mut changed: Vec<(usize, DocBuf, Description)> = Vec::new();
            for (at, entry) in entries.iter().enumerate() {
                let id = id_of(entry.doc());
                if !wanted.contains(&key::of(id)) {
                    continue;
                }
                let before = self.reading(stored, *entry);
                let before = before.as_raw();
                let Some(matched) = update.filter.matches_at(before, &update.context)? else { continue };
                let apply = Apply { context: &update.context, position: matched.position, inserting: false };
                let Some((after, did)) = update.update.apply_described(before, &apply)? else {
                    unchanged.push(Value::own(id));
                    continue;
                };
                if let Some(validator) = &validator {
                    validator.check(after.as_raw(), Some(before), &update.context)?;
                }
                let stays = self.group(before)? == self.group(after.as_raw())?
                    && self.key_of(before) == self.key_of(after.as_raw());
                if stays {
                    changed.push((at, after, did));
                }
            }
            for (at, after, _) in &changed {
                entries[*at] = Entry::New(after.as_raw());
            }
            if !self.fits(&entries) {
                continue;
            }
            if !changed.is_empty() {
                self.rewrite(tx, ns, stored, &entries)?;
            }
            for id in unchanged {
                wanted.remove(&key::of(id.or_null()));
                done.push((id, Written { modified: false, image: None, did: None }));
            }
            for (_, after, did) in changed {
                let id = Value::own(id_of(after.as_raw()));
                wanted.remove(&key::of(id.or_null()));
                done.push((id, Written { modified: true, image: Some(after), did: Some(did) }));
            }
        }
        let left = ids.iter().filter(|id| wanted.contains(&key::of(id.or_null()))).cloned().collect();
        Ok((done, left))
    }
}
