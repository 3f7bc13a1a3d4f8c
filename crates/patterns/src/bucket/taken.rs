//! What is taken already: `_id`s of the collection, and keys of a window.

use std::collections::HashSet;
use std::sync::Arc;

use espalier_query::Filter;
use espalier_store::{Namespace, Transaction};
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawDoc, Result, ValueRef, key};

use super::Bucket;
use crate::bson::{id_of, value_at};
use crate::stored::{filter, query};

impl Bucket {
    /// Which of the `_id`s readings have already.
    pub(super) fn taken_ids(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
    ) -> Result<HashSet<Vec<u8>>> {
        let ids: ArrayBuf = docs.iter().map(|doc| id_of(*doc)).collect();
        let one_of = |path: &str| -> Result<Arc<Filter>> {
            let mut condition = DocBuf::new();
            condition.append_doc(path, |doc| {
                doc.append("$in", &ids);
            });
            filter(&condition)
        };
        let mut taken = HashSet::new();
        let mut buckets = at.find(&self.buckets(ns), &query(one_of(&self.item_path("_id"))?))?;
        while buckets.advance()? {
            taken.extend(self.entries(buckets.doc()).iter().map(|entry| key::of(id_of(entry.doc()))));
        }
        if self.may_have_plain(at, ns)? {
            let mut plain = at.find(ns, &query(one_of("_id")?))?;
            while plain.advance()? {
                taken.insert(key::of(id_of(plain.doc())));
            }
        }
        Ok(taken)
    }

    /// The keys of the readings in a group that can be the same as one of these, which are all of that group. `except`
    /// is a reading that may have its own.
    pub(super) fn taken_keys(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        readings: &[RawDoc<'_>],
        except: Option<ValueRef<'_>>,
    ) -> Result<HashSet<Vec<u8>>> {
        let mut taken = HashSet::new();
        let (Some(first), Some(path)) = (readings.first(), self.key.first()) else { return Ok(taken) };
        let mut condition = self.group_filter(*first);
        let values = readings.iter().map(|reading| value_at(*reading, path.parts()).unwrap_or(ValueRef::Null));
        let values: Vec<ValueRef<'_>> = values.collect();
        // In a list, a pattern would mean what it matches; then every bucket of the group is looked at.
        if !values.iter().any(|value| matches!(value, ValueRef::Regex(..))) {
            let values: ArrayBuf = values.into_iter().collect();
            condition.append_doc(&self.item_path(path.as_str()), |doc| {
                doc.append("$in", &values);
            });
        }
        let except = except.map(key::of);
        let mut buckets = at.find(&self.buckets(ns), &query(filter(&condition)?))?;
        while buckets.advance()? {
            for entry in self.entries(buckets.doc()) {
                if except.as_ref().is_none_or(|id| key::of(id_of(entry.doc())) != *id) {
                    taken.insert(self.key_of(entry.doc()));
                }
            }
        }
        Ok(taken)
    }

    /// The error for an `_id` that is taken, as a plain collection gives it.
    pub(super) fn duplicate_id(&self, ns: &Namespace, id: ValueRef<'_>) -> Error {
        duplicate(ns, "_id_", [("_id", id)].into_iter())
    }

    /// The error for a key that is taken.
    pub(super) fn duplicate_key(&self, ns: &Namespace, reading: RawDoc<'_>) -> Error {
        let start = self.time.as_ref().filter(|time| !self.key.contains(&time.path));
        let by = self.by.iter().chain(start.map(|time| &time.path)).chain(&self.key);
        let values = by.map(|path| (path.as_str(), value_at(reading, path.parts()).unwrap_or(ValueRef::Null)));
        duplicate(ns, "bucket_key", values)
    }
}

fn duplicate<'v>(ns: &Namespace, index: &str, values: impl Iterator<Item = (&'v str, ValueRef<'v>)>) -> Error {
    let (mut pattern, mut value) = (DocBuf::new(), DocBuf::new());
    for (name, of) in values {
        pattern.append(name, 1);
        value.append(name, of);
    }
    let message = format!("E11000 duplicate key error collection: {ns} index: {index} dup key: {}", value.as_raw());
    let mut info = DocBuf::new();
    info.append("keyPattern", &pattern).append("keyValue", &value);
    Error::new(Code::DuplicateKey, message).with_info(info)
}
