//! Deleting documents that are known by their `_id`s: two look-ups each, which go on from one another, and no plan.

use std::sync::Arc;

use espalier_store::Namespace;
use espalier_value::{Error, RawDoc, Result, Value, ValueRef, compare};

use super::Txn;
use super::keys::id_of;
use super::write::Writes;
use crate::catalog::{Collection, Index};
use crate::index::Entry;
use crate::layout::{RecordId, record_at_start, tree_range};
use crate::view::{View, ViewLookup};

pub fn delete(
    txn: &mut Txn,
    ns: &Namespace,
    ids: &[Value<'static>],
    wanted: &mut dyn FnMut(RawDoc<'_>) -> Result<bool>,
) -> Result<u64> {
    if txn.is_auto() {
        return Err(Error::internal("documents are deleted by their _ids in a transaction only"));
    }
    let Some(collection) = txn.existing(ns) else { return Ok(0) };
    let mut search = Search::open(&txn.view(), &collection)?;
    let interrupt = txn.begin.context.interrupt.clone();
    let mut writes = txn.take_writes();
    let (mut deleted, mut done) = (0, Ok(()));
    for id in ids {
        let found = interrupt.check().and_then(|()| search.find(&writes, id.or_null(), wanted));
        match found {
            Ok(None) => {}
            Ok(Some(record)) => {
                // What goes wrong from here on takes the whole transaction with it, as any write does.
                let at = txn.snapshot();
                writes.claim(&at, &collection, record)?;
                writes.delete(&at, &collection, record, search.doc())?;
                deleted += 1;
            }
            Err(error) => {
                done = Err(error);
                break;
            }
        }
    }
    let kept = txn.keep_writes(writes);
    done.and(kept).map(|()| deleted)
}

/// Finds documents by their `_id`s.
struct Search {
    collection: Arc<Collection>,
    index: Arc<Index>,
    entries: ViewLookup,
    records: ViewLookup,
}

impl Search {
    fn open(view: &View, collection: &Arc<Collection>) -> Result<Search> {
        let Some(index) = collection.indexes.iter().find(|index| index.spec.is_id()) else {
            return Err(Error::internal(format!("{} has no index on _id", collection.ns)));
        };
        let lookup = |tree: u64| {
            let (low, high) = tree_range(tree);
            view.lookup(&low, &high)
        };
        let (entries, records) = (lookup(index.id), lookup(collection.id));
        Ok(Search { collection: collection.clone(), index: index.clone(), entries, records })
    }

    /// The record with this `_id`, unless `writes` has deleted it meanwhile or it is not wanted.
    fn find(
        &mut self,
        writes: &Writes,
        id: ValueRef<'_>,
        wanted: &mut dyn FnMut(RawDoc<'_>) -> Result<bool>,
    ) -> Result<Option<RecordId>> {
        let entry = Entry::of_id(self.index.id, id, self.index.spec.collator(), 0);
        if writes.has_removed(&entry.key) || !self.entries.find(&entry.key)? {
            return Ok(None);
        }
        let record = self.entries.value().map_or(0, record_at_start);
        if !self.records.find(&self.collection.record_key(record))? {
            return Ok(None);
        }
        // Under the collection's collation another `_id` may have the same key.
        let is_meant = compare(id_of(self.doc()), id).is_eq();
        Ok((is_meant && wanted(self.doc())?).then_some(record))
    }

    /// The document that was found last.
    fn doc(&self) -> RawDoc<'_> {
        self.records.value().map_or(RawDoc::EMPTY, RawDoc::trusted)
    }
}
