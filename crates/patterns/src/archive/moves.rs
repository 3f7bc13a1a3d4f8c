//! What a run does to one document, and the way back.

use std::time::Duration;

use espalier_query::{Context, Filter};
use espalier_store::{Namespace, Transaction};
use espalier_value::{DocBuf, Result, ValueRef};

use super::Archive;
use crate::layout::Periodic;
use crate::stored::{by_id, delete, get, insert};

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
