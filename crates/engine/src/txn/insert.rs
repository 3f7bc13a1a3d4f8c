//! Inserting: documents in order, in commits of a bounded size.

use std::sync::Arc;

use espalier_store::{Insert, Inserted, Namespace};
use espalier_value::{Code, Error, RawDoc, Result};

use super::checks::{check_size, check_valid};
use super::write::Writes;
use super::{Txn, ddl};
use crate::catalog::{Collection, Counts};
use crate::layout::{record_at_end, tree_range};
use crate::retry;

/// Bytes after which a batch outside a transaction is committed and a new one begun.
const COMMIT_BYTES: usize = 4 << 20;
/// About what a document takes in a batch beside its own bytes: keys, lengths, the entry in the `_id` index.
const OVERHEAD_BYTES: usize = 80;

pub fn insert(txn: &mut Txn, ns: &Namespace, docs: &[RawDoc<'_>], insert: &Insert) -> Result<Inserted> {
    let mut out = Inserted::default();
    let mut next = 0;
    while next < docs.len() {
        insert.context.interrupt.check()?;
        let collection = ddl::get_or_create(txn, ns)?;
        let (end, inserted, errors) = chunk(txn, &collection, docs, next, insert)?;
        let Some((inserted, errors)) = inserted.zip(Some(errors)) else {
            // A conflict: the same documents again, on the newest state.
            match next {
                0 => txn.again_from_the_start(ns)?,
                _ => txn.again(),
            }
            continue;
        };
        out.inserted += inserted;
        let stop = insert.ordered && !errors.is_empty();
        out.errors.extend(errors);
        if stop {
            break;
        }
        next = end;
        if next < docs.len() && txn.is_auto() {
            txn.refresh();
        }
    }
    Ok(out)
}

type Chunk = (usize, Option<u64>, Vec<(usize, Error)>);

/// Inserts documents from `start` on up to the size of a commit. The count is `None` on a conflict.
fn chunk(
    txn: &mut Txn,
    collection: &Arc<Collection>,
    docs: &[RawDoc<'_>],
    start: usize,
    insert: &Insert,
) -> Result<Chunk> {
    let auto = txn.is_auto();
    let mut writes = txn.take_writes();
    if auto {
        let documents = docs[start..].iter().map(|doc| doc.as_bytes().len() + OVERHEAD_BYTES);
        writes.reserve(documents.sum::<usize>().min(COMMIT_BYTES));
    }
    let (mut inserted, mut errors, mut at) = (0, Vec::new(), start);
    let mut done = Vec::new();
    // In a capped collection a document of this batch may have to make room for the next one, which only a commit of its
    // own lets it do.
    let one_by_one = collection.options.capped.is_some();
    while at < docs.len() && (!auto || (writes.len_bytes() < COMMIT_BYTES && !(one_by_one && inserted > 0))) {
        match one(txn, &mut writes, collection, docs[at], insert) {
            Ok(()) => {
                inserted += 1;
                done.extend(insert.statements.as_ref().and_then(|statements| statements.ids.get(at)));
            }
            Err(error) if is_of_the_whole(&error) => return Err(error),
            Err(error) => {
                errors.push((at, error));
                if insert.ordered {
                    break;
                }
            }
        }
        at += 1;
    }
    if let Some(statements) = &insert.statements
        && let Some(record) = retry::inserted(statements, &done)
    {
        writes.remember(&record);
    }
    if let Some(capped) = collection.options.capped {
        trim(txn, &mut writes, collection, capped)?;
    }
    if !auto {
        txn.keep_writes(writes)?;
        return Ok((at, Some(inserted), errors));
    }
    let committed = txn.commit_auto(writes)?;
    Ok((at, committed.then_some(inserted), errors))
}

/// Not the fault of one document.
fn is_of_the_whole(error: &Error) -> bool {
    let code = error.code();
    matches!(code, Code::WriteConflict | Code::MaxTimeMSExpired | Code::Interrupted | Code::InterruptedAtShutdown)
        || code == Code::ClientDisconnect
}

fn one(txn: &Txn, writes: &mut Writes, collection: &Arc<Collection>, doc: RawDoc<'_>, insert: &Insert) -> Result<()> {
    check_size(doc, &txn.core.options, Code::BSONObjectTooLarge)?;
    if !insert.bypass_validation {
        check_valid(collection, doc, None, &insert.context)?;
    }
    writes.insert(&txn.snapshot(), collection, doc)
}

/// Removes the oldest documents of a capped collection until it is within its limits again.
fn trim(txn: &Txn, writes: &mut Writes, collection: &Arc<Collection>, capped: espalier_store::Capped) -> Result<()> {
    let mut total = crate::stats::counts(&txn.view(), collection)?.plus(writes.delta(collection.id));
    let over = |total: &Counts| {
        total.bytes > capped.size_bytes as i64
            || (capped.max_documents > 0 && total.documents > capped.max_documents as i64)
    };
    if !over(&total) {
        return Ok(());
    }
    let (low, high) = tree_range(collection.id);
    let mut oldest = txn.view().scan(&low, &high, false)?;
    while over(&total) && oldest.next()? {
        let doc = RawDoc::trusted(oldest.value());
        total = total.plus(Counts { documents: -1, bytes: -(doc.as_bytes().len() as i64) });
        writes.delete(&txn.snapshot(), collection, record_at_end(oldest.key()), doc)?;
    }
    Ok(())
}
