//! Updating logical documents.

use std::sync::Arc;

use espalier_query::{Context, Filter};
use espalier_store::{Cursor, Find, Mode, Namespace, Update, Updated};
use espalier_value::{Result, ValueRef};

use super::together::next_ids;
use super::{layout_of, next_id};
use crate::txn::PatternedTxn;

impl PatternedTxn {
    pub(crate) fn update_logical(&mut self, ns: &Namespace, update: &Update) -> Result<Updated> {
        if update.multi {
            return self.update_many(ns, update);
        }
        loop {
            update.context.interrupt.check()?;
            let (target, exact) = self.target(ns, &update.filter, &update.context, &update.sort, &update.hint)?;
            let Some(id) = target else { return self.no_match(ns, update) };
            if let Some(updated) = self.update_by_id(ns, id.or_null(), update)? {
                return Ok(updated);
            }
            // Named by its `_id`, it is not there; found by a search, somebody else changed it meanwhile.
            if exact {
                return self.no_match(ns, update);
            }
        }
    }

    fn no_match(&mut self, ns: &Namespace, update: &Update) -> Result<Updated> {
        if !update.upsert {
            return Ok(Updated::default());
        }
        if let Some(updated) = self.update_hidden(ns, update)? {
            return Ok(updated);
        }
        match self.upsert(ns, update)? {
            Some(updated) => Ok(updated),
            // Somebody else was faster; it is there now.
            None => self.update_logical(ns, &Update { multi: false, ..update.clone() }),
        }
    }

    /// An upsert that found nothing, on documents that match and are not shown to a find.
    fn update_hidden(&mut self, ns: &Namespace, update: &Update) -> Result<Option<Updated>> {
        let Some(mut cursor) = self.hidden(ns, update)? else { return Ok(None) };
        let mut total = Updated::default();
        while let Some(id) = next_id(&mut *cursor)? {
            update.context.interrupt.check()?;
            let Some(updated) = self.update_by_id(ns, id.or_null(), update)? else { continue };
            if !update.multi {
                return Ok(Some(updated));
            }
            total.matched += 1;
            total.modified += updated.modified;
        }
        Ok((total.matched > 0).then_some(total))
    }

    pub(super) fn hidden(&self, ns: &Namespace, update: &Update) -> Result<Option<Box<dyn Cursor>>> {
        let at = self.now(&update.context)?;
        let Some((layout, _)) = layout_of(&*at, ns)? else { return Ok(None) };
        let mut find = Find::new(update.filter.clone(), update.context.clone());
        find.sort = update.sort.clone();
        layout.hidden(&*at, ns, &find)
    }

    /// Refuses a write of many documents as a whole.
    pub(super) fn check_many(&self, ns: &Namespace, filter: &Arc<Filter>, context: &Arc<Context>) -> Result<()> {
        let at = self.now(context)?;
        match layout_of(&*at, ns)? {
            Some((layout, _)) => layout.check_many(&*at, ns, &Find::new(filter.clone(), context.clone())),
            None => Ok(()),
        }
    }

    fn update_many(&mut self, ns: &Namespace, update: &Update) -> Result<Updated> {
        self.check_many(ns, &update.filter, &update.context)?;
        let mut total = Updated::default();
        let mut cursor = self.ids(ns, &update.filter, &update.context, &None, &update.hint, None)?;
        loop {
            let ids = next_ids(&mut *cursor)?;
            if ids.is_empty() {
                break;
            }
            let (done, left) = self.update_together(ns, ids, update)?;
            total.matched += done.matched;
            total.modified += done.modified;
            for id in left {
                update.context.interrupt.check()?;
                if let Some(updated) = self.update_by_id(ns, id.or_null(), update)? {
                    total.matched += 1;
                    total.modified += updated.modified;
                }
            }
        }
        if total.matched > 0 { Ok(total) } else { self.no_match(ns, update) }
    }

    fn update_by_id(&mut self, ns: &Namespace, id: ValueRef<'_>, update: &Update) -> Result<Option<Updated>> {
        if let Some(updated) = self.update_at_once(ns, id, update)? {
            return Ok(Some(updated));
        }
        if let Some(updated) = self.update_combined(ns, id, update)? {
            return Ok(updated);
        }
        let shared = self.shared.clone();
        let _turn = match self.begin.mode {
            Mode::Auto => Some(shared.locks.lock(ns, id, &update.context)?),
            Mode::Transaction => None,
        };
        if let Some(updated) = self.update_following(ns, id, update)? {
            return Ok(updated);
        }
        self.atomically(ns, &update.context, Vec::new(), |write| write.update_told(ns, id, update))
    }
}
