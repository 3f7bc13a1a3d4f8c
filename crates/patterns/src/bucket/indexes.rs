//! Indexes on readings: kept on the buckets, and on the collection itself for the day when the pattern goes.

use espalier_store::{IndexSpec, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, Result, doc};

use super::{Bucket, PART};
use crate::beside;

impl Bucket {
    /// The indexes every collection of buckets has: its order, with one bucket for each place; the readings' `_id`s; and
    /// their keys.
    pub(super) fn own_indexes(&self) -> Result<Vec<IndexSpec>> {
        let mut ids = DocBuf::new();
        ids.append(&self.item_path("_id"), 1);
        let mut all = vec![
            doc! { "key": &self.order(1), "name": "bucket_order", "unique": true },
            doc! { "key": &ids, "name": "bucket_ids", "unique": true },
        ];
        if !self.key.is_empty() {
            let mut keys = DocBuf::new();
            for elem in self.order(1).as_raw().iter().filter(|elem| elem.name() != PART) {
                keys.append_elem(elem);
            }
            for path in &self.key {
                keys.append(&self.item_path(path.as_str()), 1);
            }
            all.push(doc! { "key": &keys, "name": "bucket_key", "unique": true });
        }
        all.iter().map(|spec| IndexSpec::parse(spec.as_raw())).collect()
    }

    pub(super) fn create_logical_indexes(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        specs: &[IndexSpec],
    ) -> Result<(usize, usize)> {
        let mut beside = Vec::new();
        for spec in specs {
            beside.extend(self.for_buckets(spec)?);
        }
        let done = tx.create_indexes(ns, specs)?;
        beside::create_indexes(tx, &self.buckets(ns), beside)?;
        Ok(done)
    }

    /// The index on buckets for one on readings; `None` if it would be of no use there.
    pub(super) fn for_buckets(&self, spec: &IndexSpec) -> Result<Option<IndexSpec>> {
        if spec.is_id() {
            return Ok(None);
        }
        if spec.unique {
            return Err(Error::new(
                Code::CannotCreateIndex,
                format!(
                    "the unique index '{}' cannot be kept on a collection with the pattern 'bucket'; declare the \
                     pattern with 'key' to keep readings of one window distinct",
                    spec.name
                ),
            ));
        }
        if self.own_indexes()?.iter().any(|own| own.name == spec.name) {
            return Err(Error::new(
                Code::CannotCreateIndex,
                format!("the name '{}' is one of the pattern 'bucket'; choose another", spec.name),
            ));
        }
        if spec.is_wildcard() {
            return Ok(None);
        }
        let mut key = DocBuf::new();
        let mut in_items = false;
        for elem in spec.key() {
            let time = self.time.as_ref().filter(|time| time.path.as_str() == elem.name());
            if self.by.iter().any(|path| path.as_str() == elem.name()) {
                key.append_elem(elem);
            } else if let Some(time) = time {
                key.append_renamed(&time.start, elem);
            } else if !in_items {
                // One field of readings only: two could be arrays, which one index cannot hold.
                in_items = true;
                key.append_renamed(&self.item_path(elem.name()), elem);
            }
        }
        // What is in the order of the buckets already needs no other index.
        let known = self.order(1);
        let mut order = known.as_raw().iter();
        if key.as_raw().iter().all(|elem| order.next().is_some_and(|own| own.raw() == elem.raw())) {
            return Ok(None);
        }
        let listed = doc! { "key": &key, "name": spec.name.as_str() };
        IndexSpec::parse(listed.as_raw()).map(Some)
    }

    pub(super) fn drop_logical_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        tx.drop_index(ns, name)?;
        if self.own_indexes()?.iter().any(|index| index.name == name) || name == "_id_" {
            return Ok(());
        }
        let mut left = Vec::new();
        for index in tx.indexes(ns)? {
            left.extend(self.for_buckets(&index.spec)?);
        }
        beside::drop_index(tx, &self.buckets(ns), name, left)
    }
}
