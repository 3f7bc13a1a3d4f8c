//! Checking the invariant over what is stored, mending it, and the pattern's health.

use espalier_query::Context;
use espalier_store::{Namespace, Transaction};
use espalier_value::{DocBuf, Result, Value, ValueRef, doc};

use super::Archive;
use crate::bson::id_of;
use crate::layout::Checked;
use crate::stored::{by_id, delete, everything, get};

/// Violations that are told one by one.
const TOLD_MAX: usize = 1_000;

impl Archive {
    /// No archived document has the `_id` or a unique key of an active one.
    pub(super) fn check_all(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked> {
        let archive = self.archive(ns);
        let mut checked = Checked { documents: at.coll_stats(ns)?.count, ..Checked::default() };
        let mut cursor = at.find(&archive, &everything())?;
        while cursor.advance()? && checked.violations.len() < TOLD_MAX {
            context.interrupt.check()?;
            checked.documents += 1;
            let id = id_of(cursor.doc());
            if let Some(active) = get(at, ns, id)? {
                let same = active == self.without_stamps(cursor.doc());
                let how = if same { "the same" } else { "not the same" };
                let text = format!("_id {id} is both in {ns} and in {archive}; the two are {how}");
                checked.violations.push((text, Value::own(id)));
            } else if let Some(error) = at.taken(ns, cursor.doc())? {
                let text = format!("{archive}, _id {id}: a unique key is also in {ns}: {}", error.message());
                checked.violations.push((text, Value::own(id)));
            }
        }
        Ok(checked)
    }

    /// Of a document that is in both the active one stays: clients write to that. Two documents that share a key are not
    /// for the pattern to choose between, and stay a violation.
    pub(super) fn repair_one(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        if get(tx, ns, id)?.is_some() {
            delete(tx, &self.archive(ns), by_id(id)?, false)?;
        }
        Ok(())
    }

    /// Numbers for `collStats`.
    pub(super) fn health_of(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        let stats = at.coll_stats(&self.archive(ns))?;
        Ok(doc! {
            "into": &*self.into,
            "archivedDocuments": stats.count as i64,
            "archivedSize": stats.size as i64,
            "archivedStorageSize": stats.storage_size as i64,
            "every": &*self.every_text,
        })
    }
}
