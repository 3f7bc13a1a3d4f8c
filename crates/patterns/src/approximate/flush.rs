//! Rewriting documents with the increments that wait, one commit each, and the run that does it in time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use espalier_query::{Context, Filter};
use espalier_store::{EventKind, Happening, Namespace, Transaction};
use espalier_value::{ArrayBuf, DocBuf, RawDoc, Result, ValueRef, doc};

use super::Approximate;
use super::counters::overlaid;
use super::row::{Row, SINCE, Stored};
use crate::bson::{value_at, with_value};
use crate::layout::Periodic;
use crate::roles::Roles;
use crate::stored::{get, remove, replace};
use crate::write::key_of;

/// Pending documents that a run looks for at a time.
const BATCH: u64 = 1_000;
/// Runs in the time that an increment may wait.
const RUNS: u32 = 5;
const EVERY_MIN: Duration = Duration::from_millis(10);

impl Approximate {
    /// Writes a document with its increments and the stamp; nothing waits any more. `row` are the increments as they are
    /// now, which need not be stored.
    pub(super) fn settle(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        stored: &Stored,
        row: Option<&Row>,
        now_ms: i64,
    ) -> Result<DocBuf> {
        let after = match row {
            Some(row) => overlaid(stored.base.as_raw(), row.to.as_raw()),
            None => stored.base.clone(),
        };
        let after = self.stamped(after.as_raw(), now_ms);
        self.forget(tx, ns, id, stored)?;
        replace(tx, ns, after.clone())?;
        self.flushes.fetch_add(1, Ordering::Relaxed);
        Ok(after)
    }

    /// Takes the pending document away, or sees to it that none comes meanwhile.
    pub(super) fn forget(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        stored: &Stored,
    ) -> Result<()> {
        match stored.has_pending {
            true => remove(tx, &self.pending(ns), id),
            false => self.bar(tx, ns, id),
        }
    }

    /// The document with the time of the flush; as it is if something else stands where it belongs.
    pub(super) fn stamped(&self, doc: RawDoc<'_>, now_ms: i64) -> DocBuf {
        with_value(doc, self.stamp.parts(), ValueRef::DateTime(now_ms))
    }

    /// What an update did, and the stamp.
    pub(super) fn with_stamp_told(&self, description: RawDoc<'_>, now_ms: i64) -> DocBuf {
        let mut out = DocBuf::new();
        for elem in description {
            match (elem.name(), elem.value()) {
                ("updatedFields", ValueRef::Document(fields)) => {
                    let mut all = DocBuf::from_raw(fields);
                    all.append(self.stamp.as_str(), ValueRef::DateTime(now_ms));
                    out.append("updatedFields", &all)
                }
                _ => out.append_elem(elem),
            };
        }
        out
    }

    /// Flushes one document if increments of it wait; false if none do.
    pub(super) fn flush_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        now_ms: i64,
    ) -> Result<bool> {
        let Some(stored) = self.load(tx, ns, id)? else {
            // Its document is gone, and only by somebody who wrote stored documents.
            let there = get(tx, &self.pending(ns), id)?.is_some();
            remove(tx, &self.pending(ns), id)?;
            return Ok(there);
        };
        let Some(row) = &stored.row else {
            // A spare one that nobody needed.
            remove(tx, &self.pending(ns), id)?;
            return Ok(stored.has_pending);
        };
        let after = self.settle(tx, ns, id, &stored, Some(row), now_ms)?;
        if value_at(after.as_raw(), self.stamp.parts()).is_some() {
            let mut event = Happening::new(ns.clone(), EventKind::Update);
            event.key = Some(key_of(id));
            let roles = Roles::of(tx, ns)?.unwrap_or_default();
            event.before = roles.pre_images.then(|| stored.logical());
            event.document = roles.pre_images.then(|| after.clone());
            let nothing = ArrayBuf::new();
            let description =
                doc! { "updatedFields": &DocBuf::new(), "removedFields": &nothing, "truncatedArrays": &nothing };
            event.description = Some(self.with_stamp_told(description.as_raw(), now_ms));
            tx.announce(event)?;
        }
        Ok(true)
    }
}

impl Periodic for Approximate {
    fn every(&self) -> Duration {
        (self.within / RUNS).max(EVERY_MIN)
    }

    fn batch(&self) -> u64 {
        BATCH
    }

    /// Those that would have waited too long by the next run.
    fn due(&self, now_ms: i64) -> DocBuf {
        let latest = now_ms + self.every().as_millis() as i64 - self.within.as_millis() as i64;
        let mut out = DocBuf::new();
        out.append_doc(SINCE, |doc| {
            doc.append("$lte", ValueRef::DateTime(latest));
        });
        out
    }

    fn due_on_demand(&self, _: i64) -> DocBuf {
        DocBuf::new()
    }

    fn place(&self, ns: &Namespace) -> Namespace {
        self.pending(ns)
    }

    fn work(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        due: &Filter,
        context: &Context,
    ) -> Result<bool> {
        let Some(row) = get(tx, &self.pending(ns), id)? else { return Ok(false) };
        Ok(due.matches(row.as_raw(), context)? && self.flush_one(tx, ns, id, context.now_ms)?)
    }
}
