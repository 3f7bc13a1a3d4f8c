//! Increments of one document, one after the other, written as one.

use espalier_query::update::{Apply, Description};
use espalier_store::{Namespace, Transaction, Update, Want};
use espalier_value::{DocBuf, Path, RawDoc, Result, ValueRef};

use super::Approximate;
use super::counters::{only, overlaid};
use super::row::{Row, Stored};
use crate::bson::value_at;
use crate::layout::Written;
use crate::stored::{insert, replace};
use crate::validator::Validator;

/// A document that is nearly as large as one may be is rewritten by every increment, which may be one too many.
const NEARLY_TOO_LARGE: usize = (16 << 20) - (64 << 10);

impl Approximate {
    /// Whether an update does nothing but add to declared fields.
    pub(super) fn appends(&self, update: &Update) -> bool {
        update.update.increments().is_some_and(|paths| paths.iter().all(|path| self.counters.holds(path)))
    }

    /// Whether increments of a document may wait beside it.
    pub(super) fn can_wait(&self, base: RawDoc<'_>) -> bool {
        base.as_bytes().len() < NEARLY_TOO_LARGE
    }

    /// Carries out updates that only add to declared fields. The outer error is that of all.
    pub(super) fn append(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        stored: &Stored,
        updates: &[&Update],
    ) -> Result<Vec<Result<Option<Written>>>> {
        let validator = Validator::of(tx, ns)?;
        let logical = stored.logical();
        let mut appending = Appending {
            id,
            base: stored.base.as_raw(),
            counters: self.counters.skeleton(logical.as_raw()),
            validator: validator.as_ref(),
        };
        let (mut done, mut count, mut last, mut now_ms) = (Vec::with_capacity(updates.len()), 0, None, 0);
        let mut touched: Vec<&Path> = Vec::new();
        for update in updates {
            let one = appending.one(update);
            if let Ok(Some(Written { modified: true, .. })) = &one {
                (count, last, now_ms) = (count + 1, Some(done.len()), update.context.now_ms);
                for path in update.update.increments().unwrap_or_default() {
                    if !touched.iter().any(|other| other.as_str() == path.as_str()) {
                        touched.push(path);
                    }
                }
            }
            done.push(one);
        }
        let Some(last) = last else { return Ok(done) };
        let row = self.grown(stored, appending.counters.as_raw(), &touched, count, now_ms);
        if row.increments as u64 >= self.flush_count {
            let after = self.settle(tx, ns, id, stored, Some(&row), now_ms)?;
            if let Ok(Some(written)) = &mut done[last] {
                self.tell_flush(written, updates[last].want, &after, now_ms);
            }
        } else {
            let (pending, doc) = (self.pending(ns), row.write(id));
            match stored.has_pending {
                true => replace(tx, &pending, doc)?,
                false => insert(tx, &pending, &[doc.as_raw()])?,
            }
        }
        Ok(done)
    }

    /// The pending document after more increments, which left the counters with these values.
    fn grown(&self, stored: &Stored, counters: RawDoc<'_>, touched: &[&Path], count: i64, now_ms: i64) -> Row {
        let old = stored.row.as_ref();
        let changed = |path: &&Path| {
            let before = old.is_some_and(|row| value_at(row.to.as_raw(), path.parts()).is_some());
            before || touched.iter().any(|other| other.as_str() == path.as_str())
        };
        let changed: Vec<&Path> = self.counters.0.iter().filter(changed).collect();
        let mut from = only(stored.base.as_raw(), &changed);
        if let Some(row) = old {
            // What was noted first holds: should somebody have written the stored document meanwhile, it will be seen.
            from = overlaid(from.as_raw(), row.from.as_raw());
        }
        Row {
            increments: old.map_or(0, |row| row.increments) + count,
            since_ms: old.map_or(now_ms, |row| row.since_ms),
            from,
            to: only(counters, &changed),
        }
    }

    /// Adds to the last increment's report that the document was rewritten with it.
    fn tell_flush(&self, written: &mut Written, want: Want, after: &DocBuf, now_ms: i64) {
        if want == Want::After {
            written.image = Some(after.clone());
        }
        if let Some(Description::Updated(description)) = &written.did
            && value_at(after.as_raw(), self.stamp.parts()).is_some()
        {
            written.did = Some(Description::Updated(self.with_stamp_told(description.as_raw(), now_ms)));
        }
    }
}

/// The counters while one increment after the other changes them.
struct Appending<'a> {
    id: ValueRef<'a>,
    base: RawDoc<'a>,
    counters: DocBuf,
    validator: Option<&'a Validator>,
}

impl Appending<'_> {
    fn one(&mut self, update: &Update) -> Result<Option<Written>> {
        if !is_named_by(update, self.id) && !update.filter.matches(self.logical().as_raw(), &update.context)? {
            return Ok(None);
        }
        let before = if update.want == Want::Before { Some(self.logical()) } else { None };
        let apply = Apply::new(&update.context);
        let Some((counters, did)) = update.update.apply_described(self.counters.as_raw(), &apply)? else {
            let image = (update.want != Want::Nothing).then(|| self.logical());
            return Ok(Some(Written { modified: false, image, did: None }));
        };
        if let Some(validator) = self.validator.filter(|_| !update.bypass_validation) {
            let after = overlaid(self.base, counters.as_raw());
            validator.check(after.as_raw(), Some(self.logical().as_raw()), &update.context)?;
        }
        self.counters = counters;
        let image = match update.want {
            Want::Nothing => None,
            Want::Before => before,
            Want::After => Some(self.logical()),
        };
        Ok(Some(Written { modified: true, image, did: Some(did) }))
    }

    fn logical(&self) -> DocBuf {
        overlaid(self.base, self.counters.as_raw())
    }
}

/// Whether the filter is the document's `_id` and nothing else.
pub fn is_named_by(update: &Update, id: ValueRef<'_>) -> bool {
    let mut elems = update.filter.source().iter();
    match (elems.next(), elems.next()) {
        (Some(elem), None) if elem.name() == "_id" && update.context.collation.is_none() => match elem.value() {
            ValueRef::Document(_) | ValueRef::Regex { .. } | ValueRef::Array(_) | ValueRef::Null => false,
            value => espalier_value::compare(value, id).is_eq(),
        },
        _ => false,
    }
}
