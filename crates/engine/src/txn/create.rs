//! Collections and indexes that a transaction creates: in its own catalog until it commits, in everybody's afterwards.

use std::sync::Arc;

use espalier_store::{CollectionOptions, IndexSpec, Namespace};
use espalier_value::{Code, Error, Result};

use super::claims::{Gate, name_place};
use super::write::{Writes, recycle};
use super::{Txn, ddl};
use crate::catalog::{Collection, Index};
use crate::error::write_conflict;
use crate::history;
use crate::stats;

/// Outside a transaction: waits while a transaction is creating a collection of this name.
pub fn wait_for_name(txn: &mut Txn, ns: &Namespace) -> Result<()> {
    if txn.core.locks.wait_unclaimed(name_place(ns), &txn.begin.context.interrupt)? {
        txn.refresh();
    }
    Ok(())
}

/// A collection that is not there in the transaction's catalog.
pub fn create(txn: &mut Txn, ns: &Namespace, options: &CollectionOptions) -> Result<Arc<Collection>> {
    if let Gate::Claims(claims) = &mut txn.writes.gate {
        claims.name(ns)?;
    }
    let core = txn.core.clone();
    // Somebody else created it after this transaction's snapshot.
    if core.capture().1.get(ns).is_some() {
        return Err(write_conflict());
    }
    let collection = Arc::new(ddl::new_collection(&core, &txn.catalog, ns, options)?);
    txn.created.push(collection.id);
    let (mut writes, teller) = (txn.take_writes(), txn.teller());
    writes.tell(|batch| history::created(teller, batch, &collection));
    txn.keep_writes(writes)?;
    Arc::make_mut(&mut txn.catalog).put(collection.clone());
    Ok(collection)
}

/// Indexes on a collection that this transaction created and that has no documents yet.
pub fn create_indexes(txn: &mut Txn, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
    let mut collection = Collection::clone(&*ddl::get_or_create(txn, ns)?);
    let before = collection.indexes.len();
    let mut new = Vec::new();
    for spec in specs {
        if ddl::existing(&collection, spec)?.is_none() {
            check_creatable(txn, &collection)?;
            ddl::check_fields(&txn.core.options, spec)?;
            if collection.indexes.len() >= txn.core.options.indexes_max {
                let message = format!("add index fails, too many indexes for {ns} key:{}", spec.key());
                return Err(Error::new(Code::CannotCreateIndex, message));
            }
            let index = Arc::new(Index::new(txn.core.take_tree(), spec.clone(), 0, false));
            new.push(index.id);
            collection.indexes.push(index);
        }
    }
    let after = collection.indexes.len();
    if !new.is_empty() {
        let collection = Arc::new(collection);
        let (mut writes, teller) = (txn.take_writes(), txn.teller());
        writes.tell(|batch| history::indexes_created(teller, batch, &collection, &new, true));
        txn.keep_writes(writes)?;
        txn.writes.replace_collection(&collection);
        Arc::make_mut(&mut txn.catalog).put(collection);
    }
    Ok((before, after))
}

fn check_creatable(txn: &Txn, collection: &Collection) -> Result<()> {
    let documents = stats::counts(&txn.view(), collection)?.plus(txn.own_counts(collection)).documents;
    let kind = match (txn.created.contains(&collection.id), documents) {
        (true, 0) => return Ok(()),
        (true, _) => "non-empty",
        (false, _) => "existing",
    };
    let message =
        format!("Cannot create new indexes on {kind} collection {} in a multi-document transaction.", collection.ns);
    Err(Error::new(Code::OperationNotSupportedInTransaction, message))
}

/// Commits a transaction that created collections. False on a conflict.
pub fn commit(txn: &mut Txn, writes: Writes) -> Result<bool> {
    let created: Vec<_> = txn.catalog.iter().filter(|c| txn.created.contains(&c.id)).cloned().collect();
    let (mut batch, deltas, changes, _claims) = writes.into_parts();
    let committed = txn.core.commit_creating(&created, &mut batch, txn.view.get_mut(), &deltas);
    recycle(batch);
    let Some(token) = committed? else { return Ok(false) };
    txn.last = txn.last.max(token);
    txn.changes.extend(changes);
    Ok(true)
}
