//! Writing many logical documents together, for layouts that store them together: what one write can do is not done in a
//! hundred.

use espalier_query::update::Description;
use espalier_store::{Cursor, Delete, EventKind, Happening, Namespace, Update, Updated};
use espalier_value::{Result, Value};

use super::{key_of, layout_to_write};
use crate::roles::Roles;
use crate::txn::PatternedTxn;

/// Documents that are written in one transaction.
const TOGETHER: usize = 500;

/// The next `_id`s of a cursor.
pub fn next_ids(cursor: &mut dyn Cursor) -> Result<Vec<Value<'static>>> {
    let mut ids = Vec::new();
    while ids.len() < TOGETHER && cursor.advance()? {
        ids.push(Value::own(crate::bson::id_of(cursor.doc())));
    }
    Ok(ids)
}

impl PatternedTxn {
    /// Deletes those of the documents that the filter lets through; `None` if it has to be done one by one.
    pub(crate) fn delete_together(
        &mut self,
        ns: &Namespace,
        ids: &[Value<'static>],
        delete: &Delete,
    ) -> Result<Option<u64>> {
        self.atomically(ns, &delete.context, Vec::new(), |write| {
            let tx = &mut *write.tx;
            let Some((layout, false)) = layout_to_write(tx, ns)? else { return Ok(None) };
            if Roles::of(tx, ns)?.is_some_and(|roles| roles.wants_images()) {
                return Ok(None);
            }
            let Some(gone) = layout.delete_some(tx, ns, ids, delete)? else { return Ok(None) };
            for id in &gone {
                let mut event = Happening::new(ns.clone(), EventKind::Delete);
                event.key = Some(key_of(id.or_null()));
                tx.announce(event)?;
            }
            Ok(Some(gone.len() as u64))
        })
    }

    /// Updates those of the documents that the filter lets through; gives the `_id`s of those that have to be done one by
    /// one.
    pub(crate) fn update_together(
        &mut self,
        ns: &Namespace,
        ids: Vec<Value<'static>>,
        update: &Update,
    ) -> Result<(Updated, Vec<Value<'static>>)> {
        let done = self.atomically(ns, &update.context, Vec::new(), |write| {
            let tx = &mut *write.tx;
            let mut total = Updated::default();
            let Some((layout, false)) = layout_to_write(tx, ns)? else { return Ok((total, None)) };
            if Roles::of(tx, ns)?.is_some_and(|roles| roles.wants_images()) {
                return Ok((total, None));
            }
            let Some((written, left)) = layout.update_some(tx, ns, &ids, update)? else { return Ok((total, None)) };
            for (id, written) in written {
                total.matched += 1;
                if !written.modified {
                    continue;
                }
                total.modified += 1;
                let mut event = Happening::new(ns.clone(), EventKind::Replace);
                event.key = Some(key_of(id.or_null()));
                match written.did {
                    Some(Description::Updated(description)) => {
                        event.kind = EventKind::Update;
                        event.description = Some(description);
                    }
                    _ => event.document = written.image,
                }
                tx.announce(event)?;
            }
            Ok((total, Some(left)))
        });
        let (total, left) = done?;
        Ok((total, left.unwrap_or(ids)))
    }
}
