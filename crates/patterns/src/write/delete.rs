//! Deleting logical documents.

use espalier_store::{Delete, Deleted, Mode, Namespace};
use espalier_value::{Result, ValueRef};

use super::together::next_ids;
use crate::txn::PatternedTxn;

impl PatternedTxn {
    pub(crate) fn delete_logical(&mut self, ns: &Namespace, delete: &Delete) -> Result<Deleted> {
        if delete.multi {
            self.check_many(ns, &delete.filter, &delete.context)?;
            let mut deleted = 0;
            let mut cursor = self.ids(ns, &delete.filter, &delete.context, &None, &delete.hint, None)?;
            loop {
                let ids = next_ids(&mut *cursor)?;
                if ids.is_empty() {
                    break;
                }
                if let Some(done) = self.delete_together(ns, &ids, delete)? {
                    deleted += done;
                    continue;
                }
                for id in ids {
                    delete.context.interrupt.check()?;
                    deleted += u64::from(self.delete_by_id(ns, id.or_null(), delete)?.is_some());
                }
            }
            return Ok(Deleted { deleted, image: None });
        }
        loop {
            delete.context.interrupt.check()?;
            let (target, exact) = self.target(ns, &delete.filter, &delete.context, &delete.sort, &delete.hint)?;
            let Some(id) = target else { return Ok(Deleted::default()) };
            if let Some(deleted) = self.delete_by_id(ns, id.or_null(), delete)? {
                return Ok(deleted);
            }
            if exact {
                return Ok(Deleted::default());
            }
        }
    }

    fn delete_by_id(&mut self, ns: &Namespace, id: ValueRef<'_>, delete: &Delete) -> Result<Option<Deleted>> {
        let shared = self.shared.clone();
        let _turn = match self.begin.mode {
            Mode::Auto => Some(shared.locks.lock(ns, id, &delete.context)?),
            Mode::Transaction => None,
        };
        if let Some(deleted) = self.delete_following(ns, id, delete)? {
            return Ok(deleted);
        }
        self.atomically(ns, &delete.context, Vec::new(), |write| write.delete_told(ns, id, delete))
    }
}
