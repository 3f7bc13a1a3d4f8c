//! Checking the invariant over what is stored, and mending it.

use std::collections::HashSet;
use std::sync::Arc;

use espalier_query::{Context, Filter};
use espalier_store::{CollStats, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef, doc, key};

use super::stored::Entry;
use super::{Bucket, STATS};
use crate::bson::{id_of, value_at};
use crate::declare::pending;
use crate::layout::{Checked, Move};
use crate::stored::{get, query, remove};

/// Violations that are told one by one.
const TOLD_MAX: usize = 1_000;
/// What a violation is about: a bucket, or a document that is in none.
const IN_BUCKET: &str = "bucket";
const PLAIN: &str = "document";
/// How many plain documents go into buckets with the one that is mended.
const TOGETHER: usize = 500;

impl Bucket {
    pub(super) fn check_all(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked> {
        let mut checked = Checked::default();
        let into = self.buckets(ns);
        let mut buckets = at.find(&into, &query(Arc::new(Filter::empty())))?;
        while buckets.advance()? && checked.violations.len() < TOLD_MAX {
            context.interrupt.check()?;
            let stored = buckets.doc();
            checked.documents += self.items_of(stored).len() as u64;
            for wrong in self.violations(stored)? {
                let about = about(IN_BUCKET, id_of(stored));
                let text = format!("{into}, bucket with _id {}: {wrong}", id_of(stored));
                checked.violations.push((text, about));
            }
        }
        let migrating = at.collection(ns)?.is_some_and(|info| pending(info.options.listed.as_raw()).is_some());
        let mut plain = at.find(ns, &query(Arc::new(Filter::empty())))?;
        while plain.advance()? && checked.violations.len() < TOLD_MAX {
            context.interrupt.check()?;
            checked.documents += 1;
            let id = id_of(plain.doc());
            let twice = self.locate(at, ns, id)?.is_some();
            if twice || !migrating {
                let wrong = if twice { "is in a bucket and beside it" } else { "is in no bucket" };
                let text = format!("{ns}: the document with _id {id} {wrong}");
                checked.violations.push((text, about(PLAIN, id)));
            }
        }
        Ok(checked)
    }

    /// What is wrong with one bucket, in words.
    fn violations(&self, stored: RawDoc<'_>) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let entries = self.entries(stored);
        if entries.is_empty() {
            wrong.push("it is empty".to_string());
        }
        if entries.len() != self.items_of(stored).len() {
            wrong.push(format!("'{}' has elements that are no documents", self.items));
        }
        if entries.len() > self.max_count {
            wrong.push(format!("it has {} readings, more than {}", entries.len(), self.max_count));
        }
        if !self.fits(&entries) && entries.len() <= self.max_count {
            wrong.push(format!("its readings have more than {} bytes", self.max_bytes));
        }
        let (mut ids, mut keys) = (HashSet::new(), HashSet::new());
        let mut last = i64::MIN;
        for entry in &entries {
            let reading = self.reading(stored, *entry);
            let reading = reading.as_raw();
            let id = id_of(reading);
            if reading.get("_id").is_none() {
                wrong.push("a reading has no _id".to_string());
            }
            if !ids.insert(key::of(id)) {
                wrong.push(format!("two readings have the _id {id}"));
            }
            if !self.key.is_empty() && !keys.insert(self.key_of(reading)) {
                wrong.push(format!("the reading with _id {id} has the key of another"));
            }
            match self.belongs(stored, reading) {
                Err(error) => wrong.push(format!("the reading with _id {id}: {}", error.message())),
                Ok(Some(field)) => {
                    wrong.push(format!("the reading with _id {id} does not belong here by its '{field}'"))
                }
                Ok(None) => {}
            }
            let at_ms = self.at_ms(reading);
            if at_ms < last {
                wrong.push(format!("the reading with _id {id} is out of order"));
            }
            last = last.max(at_ms);
        }
        let should = self.stats.of(entries.iter().map(|entry| entry.doc()))?;
        match stored.get_doc(STATS) {
            Some(is) if is.as_bytes() == should.as_bytes() => {}
            Some(is) => wrong.push(format!("'{STATS}' is {is} and should be {}", should.as_raw())),
            None => wrong.push(format!("'{STATS}' is missing and should be {}", should.as_raw())),
        }
        Ok(wrong)
    }

    /// The field by which a reading does not belong into this bucket.
    fn belongs(&self, stored: RawDoc<'_>, reading: RawDoc<'_>) -> Result<Option<&str>> {
        self.group(reading)?;
        for path in &self.by {
            let value = |doc| key::of(value_at(doc, path.parts()).unwrap_or(ValueRef::Null));
            if value(stored) != value(reading) {
                return Ok(Some(path.as_str()));
            }
        }
        if let Some(time) = &self.time {
            let (start, end) = time.every.window(self.at_ms(reading));
            let is = |name: &str, ms| matches!(stored.get(name), Some(ValueRef::DateTime(is)) if is == ms);
            if !is(&time.start, start) || !is(&time.end, end) {
                return Ok(Some(time.path.as_str()));
            }
        }
        Ok(None)
    }

    /// Puts the readings of one bucket, or one that is in none, where they belong.
    pub(super) fn repair_one(&self, tx: &mut dyn Transaction, ns: &Namespace, about: ValueRef<'_>) -> Result<()> {
        let Some(about) = about.as_doc().and_then(|about| about.first()) else { return Ok(()) };
        if about.name() == PLAIN {
            if self.locate(tx, ns, about.value())?.is_some() {
                return self.drop_twin(tx, ns, about.value());
            }
            let moved = Move { id: about.value(), out: false, most: TOGETHER };
            return self.move_in(tx, ns, moved, &fresh(about.value())).map(|_| ());
        }
        let into = self.buckets(ns);
        let Some(stored) = get(tx, &into, about.value())? else { return Ok(()) };
        let stored = stored.as_raw();
        if self.violations(stored)?.is_empty() {
            return Ok(());
        }
        let entries: Vec<Entry<'_>> = self.entries(stored);
        let readings: Vec<DocBuf> = entries.iter().map(|entry| self.reading(stored, *entry)).collect();
        remove(tx, &into, about.value())?;
        let readings: Vec<RawDoc<'_>> = readings.iter().map(DocBuf::as_raw).collect();
        let how = espalier_store::Insert {
            ordered: false,
            bypass_validation: true,
            statements: None,
            context: Arc::new(fresh(about.value())),
        };
        for (at, error) in self.insert_all(tx, ns, &readings, &how)?.errors {
            // The same reading twice is one too many; anything else is not ours to throw away.
            let first = readings.iter().position(|other| other.as_bytes() == readings[at].as_bytes());
            if error.code() != Code::DuplicateKey || first == Some(at) {
                let id = id_of(readings[at]);
                return Err(Error::new(
                    Code(354),
                    format!(
                        "bucket: the reading with _id {id} cannot be kept ({}); mend it with rawData",
                        error.message()
                    ),
                ));
            }
        }
        Ok(())
    }

    /// A document that is also in a bucket, unchanged, goes.
    fn drop_twin(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        let (plain, found) = (get(tx, ns, id)?, self.locate(tx, ns, id)?);
        match (plain, found) {
            (Some(plain), Some(found)) if plain == found.reading => remove(tx, ns, id),
            (Some(_), Some(_)) => Err(Error::new(
                Code(354),
                format!("bucket: the reading with _id {id} is there twice and differs; mend it with rawData"),
            )),
            _ => Ok(()),
        }
    }

    /// The sizes of the buckets, with the number of readings.
    pub(super) fn stats_of(&self, at: &dyn Transaction, ns: &Namespace) -> Result<CollStats> {
        let (plain, buckets) = (at.coll_stats(ns)?, at.coll_stats(&self.buckets(ns))?);
        Ok(CollStats {
            count: self.count_all(at, ns)?,
            size: plain.size + buckets.size,
            storage_size: plain.storage_size + buckets.storage_size,
            ..plain
        })
    }

    /// Numbers for `collStats`.
    pub(super) fn health_of(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        let stats = at.coll_stats(&self.buckets(ns))?;
        let readings = self.count_all(at, ns)?;
        let plain = at.count(ns, &query(Arc::new(Filter::empty())))?;
        let inside = readings.saturating_sub(plain);
        let fill = if stats.count == 0 { 0.0 } else { inside as f64 / (stats.count as f64 * self.max_count as f64) };
        Ok(doc! {
            "into": &*self.into,
            "buckets": stats.count as i64,
            "readings": inside as i64,
            "notInBuckets": plain as i64,
            "readingsPerBucket": if stats.count == 0 { 0.0 } else { inside as f64 / stats.count as f64 },
            "fill": fill,
            "bucketSize": stats.size as i64,
            "bucketStorageSize": stats.storage_size as i64,
        })
    }
}

/// What a violation concerns.
fn about(what: &str, id: ValueRef<'_>) -> Value<'static> {
    let mut doc = DocBuf::new();
    doc.append(what, id);
    Value::document(doc)
}

/// Randomness for the `_id`s of buckets that a repair makes.
fn fresh(about: ValueRef<'_>) -> Context {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seed = key::of(about).iter().fold(now.as_nanos() as u64, |seed, byte| seed.rotate_left(8) ^ u64::from(*byte));
    Context::new(now.as_millis() as i64, seed)
}
