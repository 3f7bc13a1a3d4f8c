//! Deleting: find, lock, look again, remove.

use std::sync::Arc;

use espalier_query::Stream;
use espalier_store::{Delete, Deleted, Find, Namespace};
use espalier_value::{DocBuf, RawDoc, Result};

use super::{Txn, read};
use crate::catalog::Collection;
use crate::layout::RecordId;

pub fn delete(txn: &mut Txn, ns: &Namespace, delete: &Delete) -> Result<Deleted> {
    let mut total = Deleted::default();
    loop {
        let Some(collection) = txn.existing(ns) else { return Ok(total) };
        let limit = (!delete.multi).then_some(1);
        let mut cursor = read::open(txn, &collection, &targets(delete, limit))?;
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
        txn.refresh();
    }
}

fn targets(delete: &Delete, limit: Option<u64>) -> Find {
    Find {
        sort: delete.sort.clone(),
        hint: delete.hint.clone(),
        limit,
        ..Find::new(delete.filter.clone(), delete.context.clone())
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
    let auto = txn.is_auto();
    loop {
        delete.context.interrupt.check()?;
        let _lock = auto.then(|| core.locks.lock(collection.id, record));
        let mut current = None;
        if auto {
            txn.refresh();
            match txn.view.get(&collection.record_key(record))? {
                None => return Ok(None),
                Some(now) if *now == *found.as_bytes() => {}
                Some(now) => current = Some(DocBuf::from_raw(RawDoc::trusted(&now))),
            }
        }
        let collection = match txn.existing(&collection.ns) {
            Some(now) if now.id == collection.id => now,
            _ => return Ok(None),
        };
        let doc = current.as_ref().unwrap_or(found);
        if current.is_some() && !delete.filter.matches(doc.as_raw(), &delete.context)? {
            return Ok(None);
        }
        let image = if delete.want_image { Some(image_of(delete, doc.as_raw())?) } else { None };
        let mut writes = txn.take_writes();
        let written = writes.delete(&collection, record, doc.as_raw());
        if !auto {
            txn.keep_writes(writes);
            written?;
        } else {
            written?;
            if !txn.commit_auto(writes)? {
                continue;
            }
        }
        return Ok(Some(image));
    }
}

fn image_of(delete: &Delete, doc: RawDoc<'_>) -> Result<DocBuf> {
    let Some(projection) = &delete.projection else { return Ok(DocBuf::from_raw(doc)) };
    let mut out = DocBuf::new();
    let position = match projection.needs_position() {
        true => delete.filter.matches_at(doc, &delete.context)?.and_then(|m| m.position),
        false => None,
    };
    projection.apply(doc, position, &delete.context, &mut out)?;
    Ok(out)
}
