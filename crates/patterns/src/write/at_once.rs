//! Updates of a logical document that come to rewriting one stored document: the store does that by itself, without a
//! transaction and without waiting for others to be done with theirs.

use espalier_store::{Begin, CommitToken, Mode, Namespace, Update, Updated};
use espalier_value::{Result, ValueRef};

use super::combine_updates::can_combine;
use crate::roles::Roles;
use crate::txn::PatternedTxn;
use crate::validator::Validator;

impl PatternedTxn {
    /// Updates the document by one write; `None` if nothing was done, and it has to be done otherwise.
    pub(super) fn update_at_once(
        &mut self,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Updated>> {
        if self.begin.mode != Mode::Auto || !self.layout(ns)?.is_some_and(|layout| layout.amends(update)) {
            return Ok(None);
        }
        let context = update.context.clone();
        let mut tx = self.shared.below.begin(Begin { mode: Mode::Auto, want_changes: false, raw: true, context })?;
        let Some(roles) = Roles::of(&*tx, ns)? else { return Ok(None) };
        let Some(layout) = roles.layout.as_ref().filter(|_| !roles.settling) else { return Ok(None) };
        if !can_combine(&*tx, ns, update)? || Validator::of(&*tx, ns)?.is_some() {
            return Ok(None);
        }
        if !layout.update_at_once(&mut *tx, ns, id, update)? {
            return Ok(None);
        }
        let token = tx.commit()?;
        let waits = layout.waits_for_disk();
        self.last = self.last.max(if waits { token } else { CommitToken { position: 0, ..token } });
        Ok(Some(Updated { matched: 1, modified: 1, ..Updated::default() }))
    }
}
