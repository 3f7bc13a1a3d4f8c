//! Checking the invariant over what is stored, mending it, and the pattern's health.

use std::sync::atomic::Ordering;

use espalier_query::Context;
use espalier_store::{Namespace, Transaction};
use espalier_value::number::Number;
use espalier_value::{DocBuf, RawDoc, Result, Value, ValueRef, doc};

use super::Approximate;
use super::row::{INCREMENTS, Row, SINCE, is_spare};
use crate::bson::{id_of, value_at, whole, with_value};
use crate::job::own_context;
use crate::layout::Checked;
use crate::stored::{everything, get, remove};

/// Violations that are told one by one.
const TOLD_MAX: usize = 1_000;

impl Approximate {
    pub(super) fn check_all(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked> {
        let pending = self.pending(ns);
        let mut checked = Checked { documents: at.coll_stats(ns)?.count, ..Checked::default() };
        let mut cursor = at.find(&pending, &everything())?;
        while cursor.advance()? && checked.violations.len() < TOLD_MAX {
            context.interrupt.check()?;
            checked.documents += 1;
            let id = id_of(cursor.doc());
            let base = get(at, ns, id)?;
            if let Some(wrong) = self.violation(cursor.doc(), base.as_ref().map(DocBuf::as_raw)) {
                checked.violations.push((format!("{pending}, _id {id}: {wrong}"), Value::own(id)));
            }
        }
        Ok(checked)
    }

    /// What is wrong with a pending document, in words.
    fn violation(&self, row: RawDoc<'_>, base: Option<RawDoc<'_>>) -> Option<String> {
        let Some(base) = base else { return Some("increments wait for a document that is not there".to_string()) };
        if is_spare(row) {
            return None;
        }
        let Some(row) = Row::read(row) else { return Some("is not what the pattern writes".to_string()) };
        for path in &self.counters.0 {
            let Some(to) = value_at(row.to.as_raw(), path.parts()) else { continue };
            let (noted, is) = (value_at(row.from.as_raw(), path.parts()), value_at(base, path.parts()));
            if !to.is_number() {
                return Some(format!("'{path}' is to become {to}, which is no number"));
            }
            if !same(noted, is) {
                return Some(format!("'{path}' is {} in the document and was {}", show(is), show(noted)));
            }
        }
        None
    }

    /// Increments of a document that is not there go. Where the stored document was written under them, they are added to
    /// what it has now.
    pub(super) fn repair_one(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        let pending = self.pending(ns);
        let Some(found) = get(tx, &pending, id)? else { return Ok(()) };
        let Some(mut stored) = self.load(tx, ns, id)? else { return remove(tx, &pending, id) };
        let Some(row) = &mut stored.row else { return remove(tx, &pending, id) };
        if self.violation(found.as_raw(), Some(stored.base.as_raw())).is_none() {
            return Ok(());
        }
        let mut to = DocBuf::new();
        for path in &self.counters.0 {
            let at = |doc| value_at(doc, path.parts());
            let Some(then) = at(row.to.as_raw()).and_then(Number::of) else { continue };
            let by = match at(row.from.as_raw()).and_then(Number::of) {
                Some(from) => then.sub(from),
                None => then,
            };
            let value = match at(stored.base.as_raw()) {
                None => by,
                Some(value) => match Number::of(value) {
                    Some(now) => now.add(by),
                    // What is no number cannot be added to.
                    None => continue,
                },
            };
            to = with_value(to.as_raw(), path.parts(), value.to_value());
        }
        row.to = to;
        let row = row.clone();
        self.settle(tx, ns, id, &stored, Some(&row), own_context().now_ms).map(drop)
    }

    /// Numbers for `collStats`.
    pub(super) fn health_of(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        let mut cursor = at.find(&self.pending(ns), &everything())?;
        let (mut documents, mut increments, mut oldest) = (0i64, 0i64, None);
        while cursor.advance()? {
            if is_spare(cursor.doc()) {
                continue;
            }
            documents += 1;
            increments += whole(cursor.doc().get(INCREMENTS)).unwrap_or(0);
            if let Some(ValueRef::DateTime(since)) = cursor.doc().get(SINCE) {
                oldest = Some(oldest.map_or(since, |oldest: i64| oldest.min(since)));
            }
        }
        let mut out = doc! {
            "into": &*self.into,
            "pendingIncrements": increments,
            "pendingDocuments": documents,
            "flushes": self.flushes.load(Ordering::Relaxed) as i64,
            "durable": self.durable,
        };
        if let Some(oldest) = oldest {
            out.append("oldestPendingMillis", (own_context().now_ms - oldest).max(0));
        }
        Ok(out)
    }
}

fn same(a: Option<ValueRef<'_>>, b: Option<ValueRef<'_>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.ty() == b.ty() && espalier_value::compare(a, b).is_eq(),
        _ => false,
    }
}

fn show(value: Option<ValueRef<'_>>) -> String {
    value.map_or("missing".to_string(), |value| value.to_string())
}
