//! What a run does to one document, and the way back.

use std::ops::RangeInclusive;
use std::time::Duration;

use espalier_query::{Context, Filter};
use espalier_store::{Namespace, Transaction};
use espalier_value::{DocBuf, RawDoc, Result, Value, ValueRef};

use super::Archive;
use super::declare::with_stamps;
use crate::layout::Periodic;
use crate::stored::{by_id, delete, get, insert};

/// What is archived has not been written to for long, as a rule: nobody is in the way of many at once.
const TOGETHER: RangeInclusive<usize> = 128..=512;

impl Periodic for Archive {
    fn every(&self) -> Duration {
        self.every
    }

    fn batch(&self) -> u64 {
        self.batch
    }

    fn due(&self, now_ms: i64) -> DocBuf {
        self.due_at(now_ms)
    }

    /// The document as it is now decides: an edit since it was found may have made it one that stays, and one that moves
    /// moves with the edit.
    fn work(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        due: &Filter,
        context: &Context,
    ) -> Result<bool> {
        let Some(doc) = get(tx, ns, id)? else { return Ok(false) };
        if !due.matches(doc.as_raw(), context)? {
            return Ok(false);
        }
        insert(tx, &self.archive(ns), &[self.stamped(doc.as_raw(), context.now_ms).as_raw()])?;
        delete(tx, ns, by_id(id)?, false)?;
        Ok(true)
    }

    /// One delete and one insert for all of them. Each is looked at in the transaction that moves it, so it moves as it is
    /// now, and whoever writes it meanwhile conflicts with that.
    fn work_on_all(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        ids: &[Value<'static>],
        due: &Filter,
        context: &Context,
    ) -> Result<u64> {
        let stamps = self.stamps_at(context.now_ms);
        let mut moving = Vec::with_capacity(ids.len());
        let moved = tx.delete_by_ids(ns, ids, &mut |doc| {
            let is_due = due.matches(doc, context)?;
            if is_due {
                moving.push(with_stamps(doc, stamps.as_raw()));
            }
            Ok(is_due)
        })?;
        let moving: Vec<RawDoc<'_>> = moving.iter().map(DocBuf::as_raw).collect();
        if !moving.is_empty() {
            insert(tx, &self.archive(ns), &moving)?;
        }
        Ok(moved)
    }

    fn together(&self) -> RangeInclusive<usize> {
        TOGETHER
    }
}

impl Archive {
    /// Brings one document back because the pattern goes.
    pub(super) fn move_back(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<bool> {
        let Some(archived) = get(tx, &self.archive(ns), id)? else { return Ok(false) };
        let plain = self.without_stamps(archived.as_raw());
        self.thaw(tx, ns, id, plain.as_raw())?;
        Ok(true)
    }
}
