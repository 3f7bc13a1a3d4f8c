//! Deleting: find, lock, look again, remove.

use std::sync::Arc;

use espalier_query::Stream;
use espalier_store::{Delete, Deleted, Namespace};
use espalier_value::{DocBuf, Result};

use super::target::Wanted;
use super::{Txn, read};
use crate::catalog::Collection;
use crate::layout::RecordId;
use crate::retry;

pub fn delete(txn: &mut Txn, ns: &Namespace, delete: &Delete) -> Result<Deleted> {
    let mut total = Deleted::default();
    loop {
        let Some(collection) = txn.existing(ns) else { return Ok(total) };
        if delete.multi && !txn.is_auto() && delete.statement.is_none() && !delete.want_image {
            return delete_all(txn, &collection, delete);
        }
        let limit = (!delete.multi).then_some(1);
        let mut cursor = read::open(txn, &collection, &wanted(delete).find(limit))?;
        let mut lost = false;
        while cursor.advance()? {
            let (record, found) = (cursor.record(), DocBuf::from_raw(cursor.doc()));
            match remove(txn, &collection, record, &found, delete)? {
                Some(image) => {
                    total.deleted += 1;
                    total.image = image;
                }
                None => lost = true,
            }
        }
        // The one document found was changed by somebody else: there may be another.
        if delete.multi || !lost {
            return Ok(total);
        }
        delete.context.interrupt.check()?;
        txn.again_from_the_start(ns)?;
    }
}

/// In a transaction, all documents at once: it sees nobody else's commits, so none has to be looked at again.
fn delete_all(txn: &mut Txn, collection: &Arc<Collection>, delete: &Delete) -> Result<Deleted> {
    let mut cursor = read::open(txn, collection, &wanted(delete).find(None))?;
    let mut writes = txn.take_writes();
    let mut total = Deleted::default();
    let done = loop {
        match delete.context.interrupt.check().and_then(|()| cursor.advance()) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
        // What goes wrong from here on takes the whole transaction with it, as with one document.
        let (record, at) = (cursor.record(), txn.snapshot());
        writes.claim(&at, collection, record)?;
        writes.delete(&at, collection, record, cursor.doc())?;
        total.deleted += 1;
        if writes.len_bytes() > txn.core.options.transaction_bytes_max {
            // Which is refused when they are kept.
            break Ok(());
        }
    };
    let kept = txn.keep_writes(writes);
    done.and(kept).map(|()| total)
}

fn wanted(delete: &Delete) -> Wanted<'_> {
    Wanted {
        filter: &delete.filter,
        context: &delete.context,
        sort: &delete.sort,
        hint: &delete.hint,
        projection: &delete.projection,
    }
}

/// Removes one record if it still matches; the outer `None` says it does not.
fn remove(
    txn: &mut Txn,
    collection: &Arc<Collection>,
    record: RecordId,
    found: &DocBuf,
    delete: &Delete,
) -> Result<Option<Option<DocBuf>>> {
    let core = txn.core.clone();
    let _lock = txn.lock(&core, collection, record)?;
    loop {
        delete.context.interrupt.check()?;
        let wanted = wanted(delete);
        let Some(target) = wanted.look_again(txn, collection, record, found, false)? else { return Ok(None) };
        let image = if delete.want_image { Some(wanted.image(target.doc.as_raw())?) } else { None };
        let mut writes = txn.take_writes();
        writes.claim(&txn.snapshot(), &target.collection, record)?;
        let written = writes.delete(&txn.snapshot(), &target.collection, record, target.doc.as_raw());
        if let Some(statement) = &delete.statement {
            writes.remember(&retry::deleted(statement, &Deleted { deleted: 1, image: image.clone() }));
        }
        if txn.settle(writes, written)? {
            return Ok(Some(image));
        }
        txn.again();
    }
}
