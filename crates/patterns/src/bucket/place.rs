//! Finding the bucket of a reading, and putting readings into the buckets of their group.

use std::sync::Arc;

use espalier_query::{Context, Filter};
use espalier_store::{Namespace, Transaction};
use espalier_value::{DocBuf, RawDoc, Result, ValueRef, compare};

use super::stored::{Entry, part_of};
use super::{Bucket, PART};
use crate::bson::{id_of, value_at};
use crate::stored::{equal, filter, first, query, remove, sort};

/// Most readings that wait in a bucket of their own before they move into a large one.
const TAIL_MAX: usize = 32;

/// A reading where it is stored.
pub struct Found {
    /// The bucket.
    pub stored: DocBuf,
    /// Its position among the bucket's readings.
    pub position: usize,
    pub reading: DocBuf,
}

impl Bucket {
    /// The reading with this `_id`, if a bucket holds it.
    pub(super) fn locate(&self, at: &dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<Option<Found>> {
        let mut condition = DocBuf::new();
        equal(&mut condition, &self.item_path("_id"), id);
        let Some(stored) = first(at, &self.buckets(ns), &query(filter(&condition)?))? else { return Ok(None) };
        let entries = self.entries(stored.as_raw());
        let found = entries.iter().position(|entry| compare(id_of(entry.doc()), id).is_eq());
        let Some((position, entry)) = found.and_then(|at| entries.get(at).map(|entry| (at, *entry))) else {
            return Ok(None);
        };
        let reading = self.reading(stored.as_raw(), entry);
        Ok(Some(Found { stored, position, reading }))
    }

    pub(super) fn item_path(&self, path: &str) -> String {
        format!("{}.{path}", self.items)
    }

    /// The filter for the buckets of a reading's group.
    pub(super) fn group_filter(&self, reading: RawDoc<'_>) -> DocBuf {
        let mut condition = DocBuf::new();
        for path in &self.by {
            let value = value_at(reading, path.parts()).unwrap_or(ValueRef::Null);
            equal(&mut condition, path.as_str(), value);
        }
        if let Some(time) = &self.time {
            let (start, _) = time.every.window(self.at_ms(reading));
            equal(&mut condition, &time.start, ValueRef::DateTime(start));
        }
        condition
    }

    /// The last bucket of a reading's group.
    fn last(&self, at: &dyn Transaction, ns: &Namespace, reading: RawDoc<'_>) -> Result<Option<DocBuf>> {
        let condition = self.group_filter(reading);
        let filter = if condition.is_empty() { Arc::new(Filter::empty()) } else { filter(&condition)? };
        let mut find = query(filter);
        find.sort = sort(&self.order(-1))?;
        first(at, &self.buckets(ns), &find)
    }

    /// Buckets by group, window and part.
    pub(super) fn order(&self, direction: i32) -> DocBuf {
        let mut order = DocBuf::new();
        for path in &self.by {
            order.append(path.as_str(), direction);
        }
        if let Some(time) = &self.time {
            order.append(&time.start, direction);
        }
        order.append(PART, direction);
        order
    }

    /// The bucket of a reading's group with this number.
    fn part(&self, at: &dyn Transaction, ns: &Namespace, reading: RawDoc<'_>, part: i64) -> Result<Option<DocBuf>> {
        let mut condition = self.group_filter(reading);
        equal(&mut condition, PART, if part > 0 { ValueRef::Int64(part) } else { ValueRef::Null });
        first(at, &self.buckets(ns), &query(filter(&condition)?))
    }

    /// How many of the newest readings of a large bucket wait in a small one of their own; `None` if buckets are small
    /// themselves.
    fn tail(&self) -> Option<usize> {
        Some((self.max_count / 4).min(TAIL_MAX)).filter(|tail| *tail > 1)
    }

    /// Puts readings of one group into its last bucket and, when that is full, into new ones. A reading that comes by
    /// itself does not rewrite a large bucket: the newest are in a small bucket behind it, and move into it together.
    pub(super) fn fill(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        readings: &[RawDoc<'_>],
        context: &Context,
    ) -> Result<()> {
        let Some(one) = readings.first() else { return Ok(()) };
        let mut new: Vec<Entry<'_>> = readings.iter().map(|reading| Entry::New(*reading)).collect();
        if self.time.is_some() {
            new.sort_by_key(|entry| self.at_ms(entry.doc()));
        }
        let mut rest = new.as_slice();
        let mut part = 0;
        if let Some(last) = self.last(tx, ns, *one)? {
            part = part_of(last.as_raw()) + 1;
            let mut entries = self.entries(last.as_raw());
            let begins_tail = self.tail().is_some_and(|tail| entries.len() >= tail && rest.len() < tail);
            let room = if begins_tail { 0 } else { self.room(&entries, rest) };
            if room > 0 {
                let (fitting, others) = rest.split_at(room);
                entries.extend_from_slice(fitting);
                if !self.join(tx, ns, last.as_raw(), &entries)? {
                    self.rewrite(tx, ns, last.as_raw(), &entries)?;
                }
                rest = others;
            }
        }
        while !rest.is_empty() {
            let (fitting, others) = rest.split_at(self.room(&[], rest).max(1));
            self.open(tx, ns, part, fitting, context)?;
            part += 1;
            rest = others;
        }
        Ok(())
    }

    /// Moves the readings of a small bucket that has grown into the one before it, if they fit there.
    fn join(&self, tx: &mut dyn Transaction, ns: &Namespace, tail: RawDoc<'_>, entries: &[Entry<'_>]) -> Result<bool> {
        let part = part_of(tail);
        if part == 0 || self.tail().is_none_or(|tail| entries.len() < tail) {
            return Ok(false);
        }
        let Some(one) = entries.first() else { return Ok(false) };
        let one = match one {
            Entry::Kept(..) => self.reading(tail, *one),
            Entry::New(reading) => DocBuf::from_raw(*reading),
        };
        let Some(before) = self.part(tx, ns, one.as_raw(), part - 1)? else { return Ok(false) };
        let readings: Vec<DocBuf> = entries.iter().map(|entry| self.reading(tail, *entry)).collect();
        let mut joined = self.entries(before.as_raw());
        joined.extend(readings.iter().map(|reading| Entry::New(reading.as_raw())));
        if !self.fits(&joined) {
            return Ok(false);
        }
        remove(tx, &self.buckets(ns), id_of(tail))?;
        self.rewrite(tx, ns, before.as_raw(), &joined)?;
        Ok(true)
    }

    /// How many of the readings still fit into a bucket that holds these.
    fn room(&self, there: &[Entry<'_>], readings: &[Entry<'_>]) -> usize {
        let mut bytes: usize = there.iter().map(|entry| entry.bytes()).sum();
        readings
            .iter()
            .take(self.max_count.saturating_sub(there.len()))
            .take_while(|entry| {
                bytes += entry.bytes();
                bytes <= self.max_bytes
            })
            .count()
    }

    /// Whether a bucket may hold these together.
    pub(super) fn fits(&self, entries: &[Entry<'_>]) -> bool {
        let bytes: usize = entries.iter().map(|entry| entry.bytes()).sum();
        entries.len() <= self.max_count && (entries.len() <= 1 || bytes <= self.max_bytes)
    }

    /// Takes a reading out of its bucket.
    pub(super) fn take_out(&self, tx: &mut dyn Transaction, ns: &Namespace, found: &Found) -> Result<()> {
        let mut entries = self.entries(found.stored.as_raw());
        entries.remove(found.position);
        self.rewrite(tx, ns, found.stored.as_raw(), &entries)
    }
}
