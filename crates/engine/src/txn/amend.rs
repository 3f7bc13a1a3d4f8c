//! Rewriting one document by its `_id`, without a filter, a plan or an update to parse: for layers that keep documents of
//! their own.

use std::sync::Arc;

use espalier_query::update::Description;
use espalier_store::{Amend, Namespace, Updated};
use espalier_value::{Code, DocBuf, RawDoc, Result, ValueRef};

use super::Txn;
use super::checks::check_size;
use super::untouched::Untouched;
use crate::catalog::Collection;
use crate::core::Core;
use crate::index::Entry;
use crate::layout::{RecordId, record_at_start};
use crate::locks::Lock;
use crate::retry;

pub fn amend(txn: &mut Txn, ns: &Namespace, id: ValueRef<'_>, change: &mut Amend<'_>) -> Result<bool> {
    loop {
        txn.begin.context.interrupt.check()?;
        let Some(collection) = txn.existing(ns) else { return Ok(false) };
        let Some(record) = record_of(txn, &collection, id)? else { return Ok(false) };
        if let Some(written) = amend_record(txn, &collection, (id, record), change)? {
            return Ok(written);
        }
        txn.again();
    }
}

fn record_of(txn: &Txn, collection: &Collection, id: ValueRef<'_>) -> Result<Option<RecordId>> {
    let Some(index) = collection.indexes.iter().find(|index| index.spec.is_id()) else { return Ok(None) };
    let entry = Entry::of_id(index.id, id, index.spec.collator(), 0);
    Ok(txn.view().get(&entry.key)?.map(|value| record_at_start(&value)))
}

/// `None` if somebody else changed what was found.
fn amend_record(
    txn: &mut Txn,
    collection: &Arc<Collection>,
    (id, record): (ValueRef<'_>, RecordId),
    change: &mut Amend<'_>,
) -> Result<Option<bool>> {
    let core = txn.core.clone();
    let _lock = txn.lock(&core, collection, record)?;
    txn.refresh();
    let Some(collection) = txn.existing(&collection.ns).filter(|now| now.id == collection.id) else { return Ok(None) };
    let Some(before) = txn.view().get(&collection.record_key(record))? else { return Ok(None) };
    let before = RawDoc::trusted(&before);
    let mut beside: Option<Other<'_>> = None;
    let amended = change(before, &mut |ns| {
        beside = Other::find(txn, &core, ns, id)?;
        Ok(beside.as_ref().map(|other| other.doc.clone()))
    })?;
    let Some(amended) = amended else { return Ok(Some(false)) };
    for doc in std::iter::once(&amended.doc).chain(&amended.beside) {
        check_size(doc.as_raw(), &core.options, Code(17419))?;
    }
    let mut writes = txn.take_writes();
    let at = txn.snapshot();
    writes.claim(&at, &collection, record)?;
    writes.notes.silent = true;
    let what = Description::Replaced;
    let mut written =
        writes.update(&at, &collection, record, before, amended.doc.as_raw(), &what, Untouched::default());
    if let (Some(after), Some(other), true) = (&amended.beside, &beside, written.is_ok()) {
        writes.claim(&at, &other.collection, other.record)?;
        let (before, after) = (other.doc.as_raw(), after.as_raw());
        written = writes.update(&at, &other.collection, other.record, before, after, &what, Untouched::default());
    }
    drop(at);
    writes.notes.silent = txn.silent;
    txn.tell(&mut writes, &amended.event);
    if let Some(statement) = &amended.statement {
        let done = Updated { matched: 1, modified: 1, ..Updated::default() };
        writes.remember(&retry::updated(statement, &done));
    }
    Ok(txn.settle(writes, written)?.then_some(true))
}

/// A document beside the one that is amended, which is locked before: whoever locks both does it in this order.
struct Other<'c> {
    collection: Arc<Collection>,
    record: RecordId,
    doc: DocBuf,
    _lock: Option<Lock<'c>>,
}

impl<'c> Other<'c> {
    fn find(txn: &mut Txn, core: &'c Core, ns: &Namespace, id: ValueRef<'_>) -> Result<Option<Other<'c>>> {
        let Some(collection) = txn.existing(ns) else { return Ok(None) };
        let Some(record) = record_of(txn, &collection, id)? else { return Ok(None) };
        let lock = txn.lock(core, &collection, record)?;
        // What is amended is the same in the newest state: its own lock is held.
        txn.refresh();
        let Some(collection) = txn.existing(ns).filter(|now| now.id == collection.id) else { return Ok(None) };
        let Some(found) = txn.view().get(&collection.record_key(record))? else { return Ok(None) };
        let doc = DocBuf::from_raw(RawDoc::trusted(&found));
        Ok(Some(Other { collection, record, doc, _lock: lock }))
    }
}
