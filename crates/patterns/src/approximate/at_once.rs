//! One more increment of counters that have some waiting already: the pending document is rewritten, and nothing else.

use espalier_query::update::{Apply, Description};
use espalier_store::{Amended, EventKind, Happening, Namespace, Transaction, Update};
use espalier_value::{DocBuf, RawDoc, Result, ValueRef};

use super::Approximate;
use super::append::is_named_by;
use super::row::{INCREMENTS, TO};
use crate::bson::{value_at, whole};
use crate::write::key_of;

impl Approximate {
    /// False if it is not that simple: no increments of these counters wait, or it is the one to rewrite the document, or
    /// it leaves the counters as they are, or fails.
    pub(super) fn one_more(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<bool> {
        if !is_named_by(update, id) {
            return Ok(false);
        }
        tx.amend(&self.pending(ns), id, &mut |row| {
            let Some((doc, description)) = self.with_one_more(row, update) else { return Ok(None) };
            let mut event = Happening::new(ns.clone(), EventKind::Update);
            event.key = Some(key_of(id));
            event.description = Some(description);
            Ok(Some(Amended { doc, event, statement: update.statement }))
        })
    }

    /// The pending document with an increment, and what that did.
    fn with_one_more(&self, row: RawDoc<'_>, update: &Update) -> Option<(DocBuf, DocBuf)> {
        let increments = whole(row.get(INCREMENTS)).filter(|count| *count > 0)? + 1;
        let to = row.get_doc(TO).filter(|_| (increments as u64) < self.flush_count)?;
        let paths = update.update.increments()?;
        if !paths.iter().all(|path| value_at(to, path.parts()).is_some()) {
            return None;
        }
        // An error is told by those who look at the whole document.
        let (to, did) = update.update.apply_described(to, &Apply::new(&update.context)).ok()??;
        let Description::Updated(description) = did else { return None };
        let mut doc = DocBuf::with_capacity(row.as_bytes().len() + 8);
        for elem in row {
            match elem.name() {
                INCREMENTS => doc.append(INCREMENTS, increments),
                TO => doc.append(TO, &to),
                _ => doc.append_elem(elem),
            };
        }
        Some((doc, description))
    }
}
