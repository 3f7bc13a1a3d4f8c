//! The pending document of one document, and the two together.

use espalier_store::{Namespace, Transaction};
use espalier_value::{DocBuf, Path, RawDoc, Result, ValueRef};

use super::Approximate;
use super::counters::overlaid;
use crate::bson::{value_at, whole};
use crate::stored::{get, insert, remove};

/// How many increments wait.
pub const INCREMENTS: &str = "increments";
/// When the first of them came.
pub const SINCE: &str = "since";
/// The values in the document itself of the counters that they changed.
pub const FROM: &str = "from";
/// The values with the increments.
pub const TO: &str = "to";

/// A pending document, but for its `_id`, which is that of the document it belongs to.
#[derive(Clone, Debug)]
pub struct Row {
    pub increments: i64,
    pub since_ms: i64,
    pub from: DocBuf,
    pub to: DocBuf,
}

impl Row {
    /// `None` if it is not what the pattern writes.
    pub fn read(doc: RawDoc<'_>) -> Option<Row> {
        let increments = whole(doc.get(INCREMENTS)).filter(|n| *n > 0)?;
        let Some(ValueRef::DateTime(since_ms)) = doc.get(SINCE) else { return None };
        let (from, to) = (DocBuf::from_raw(doc.get_doc(FROM)?), DocBuf::from_raw(doc.get_doc(TO)?));
        Some(Row { increments, since_ms, from, to })
    }

    pub fn write(&self, id: ValueRef<'_>) -> DocBuf {
        let mut doc = DocBuf::with_capacity(96 + self.from.len_bytes() + self.to.len_bytes());
        doc.append("_id", id)
            .append(INCREMENTS, self.increments)
            .append(SINCE, ValueRef::DateTime(self.since_ms))
            .append(FROM, &self.from)
            .append(TO, &self.to);
        doc
    }

    /// Whether a counter that the document itself does not have got its value by an increment.
    pub fn creates(&self, base: RawDoc<'_>, counters: &[Path]) -> bool {
        let has = |doc: RawDoc<'_>, path: &Path| value_at(doc, path.parts()).is_some();
        counters.iter().any(|path| has(self.to.as_raw(), path) && !has(base, path))
    }
}

/// A pending document without increments. A flush leaves it for those that come next, who then need not make one; if none
/// come in time it goes.
pub fn spare(id: ValueRef<'_>, now_ms: i64) -> DocBuf {
    let mut doc = DocBuf::new();
    doc.append("_id", id).append(INCREMENTS, 0i64).append(SINCE, ValueRef::DateTime(now_ms));
    doc
}

pub fn is_spare(doc: RawDoc<'_>) -> bool {
    whole(doc.get(INCREMENTS)) == Some(0) && doc.get(TO).is_none()
}

/// A document and its pending one, as one snapshot has them.
pub struct Stored {
    pub base: DocBuf,
    pub row: Option<Row>,
    /// There is a pending document, also if it is a spare one.
    pub has_pending: bool,
}

impl Stored {
    /// The document with its increments.
    pub fn logical(&self) -> DocBuf {
        match &self.row {
            Some(row) => overlaid(self.base.as_raw(), row.to.as_raw()),
            None => self.base.clone(),
        }
    }
}

impl Approximate {
    pub(super) fn load(&self, at: &dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<Option<Stored>> {
        let Some(base) = get(at, ns, id)? else { return Ok(None) };
        let pending = get(at, &self.pending(ns), id)?;
        let row = pending.as_ref().and_then(|doc| Row::read(doc.as_raw()));
        Ok(Some(Stored { base, row, has_pending: pending.is_some() }))
    }

    /// Where there is no pending document: makes whoever makes one at the same time conflict with this transaction.
    pub(super) fn bar(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        let pending = self.pending(ns);
        let mut doc = DocBuf::new();
        doc.append("_id", id);
        insert(tx, &pending, &[doc.as_raw()])?;
        remove(tx, &pending, id)
    }
}
