//! Building indexes on a live collection.
//!
//! The index is in the catalog first, marked as being built, so that every later write keeps it. Then the documents
//! are read in small steps, each at its own snapshot; a step commits its entries only if none of its documents
//! changed meanwhile (they are guarded), and is repeated otherwise. At the end the mark goes and plans may use it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use espalier_kv::Batch;
use espalier_query::Context;
use espalier_store::{CommitToken, Namespace};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

use crate::catalog::{Collection, Index};
use crate::core::{Core, lock};
use crate::history::{self, Teller};
use crate::index::Entry;
use crate::layout::{RecordId, record_at_end, record_at_start, record_key, tree_range};
use crate::txn::{Delta, Deltas, check_keys, ddl_put, duplicate_key, index_keys};

/// Builds under way.
#[derive(Default)]
pub(crate) struct Builds {
    running: Mutex<Vec<Arc<Progress>>>,
    stopped: AtomicBool,
}

struct Progress {
    ns: Namespace,
    indexes: String,
    done: AtomicU64,
    total: u64,
}

/// Documents a step reads; halved while it meets conflicts, so that a busy document cannot hold it up for ever.
const STEP: usize = 512;

impl Builds {
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// For `currentOp`.
    pub fn list(&self) -> Vec<DocBuf> {
        let describe = |progress: &Arc<Progress>| {
            let (done, total) = (progress.done.load(Ordering::Relaxed), progress.total);
            let percent = (done * 100).checked_div(total).unwrap_or(100).min(100);
            let mut doc = DocBuf::new();
            doc.append("type", "op")
                .append("desc", "IndexBuildsCoordinator")
                .append("op", "command")
                .append("ns", &progress.ns.to_string())
                .append_doc("command", |c| {
                    c.append("createIndexes", progress.ns.collection()).append("indexes", &progress.indexes);
                })
                .append("msg", &format!("Index Build: scanning collection: {done}/{total} {percent}%"))
                .append_doc("progress", |p| {
                    p.append("done", done as i64).append("total", total as i64);
                });
            doc
        };
        lock(&self.running).iter().map(describe).collect()
    }
}

/// Fills the indexes with these ids and opens them to plans; returns the commit that does.
pub(crate) fn build(
    core: &Arc<Core>,
    ns: &Namespace,
    ids: &[u64],
    context: &Context,
    teller: Teller,
) -> Result<CommitToken> {
    let (view, catalog) = core.capture();
    let gone =
        || Error::new(Code::IndexBuildAborted, format!("the collection {ns} was dropped during the index build"));
    let collection = catalog.get(ns).ok_or_else(gone)?;
    let names: Vec<_> =
        collection.indexes.iter().filter(|i| ids.contains(&i.id)).map(|i| i.spec.name.clone()).collect();
    let progress = Arc::new(Progress {
        ns: ns.clone(),
        indexes: names.join(", "),
        done: AtomicU64::new(0),
        total: crate::stats::counts(&view, collection)?.documents.max(0) as u64,
    });
    lock(&core.builds.running).push(progress.clone());
    let filled = fill(core, ns, ids, context, &progress);
    lock(&core.builds.running).retain(|p| !Arc::ptr_eq(p, &progress));
    filled?;
    let ((), opened) = core.change_catalog(|catalog, batch| {
        let mut collection = Collection::clone(&*catalog.get(ns).cloned().ok_or_else(gone)?);
        for index in &mut collection.indexes {
            if ids.contains(&index.id) {
                *index = Arc::new(index.with(index.spec.clone(), false));
            }
        }
        history::indexes_created(teller, batch, &collection, ids, progress.total == 0);
        ddl_put(catalog, batch, collection);
        Ok(())
    })?;
    Ok(opened)
}

fn fill(core: &Arc<Core>, ns: &Namespace, ids: &[u64], context: &Context, progress: &Progress) -> Result<()> {
    let mut next: RecordId = 0;
    let mut step = STEP;
    loop {
        context.interrupt.check()?;
        if core.builds.stopped.load(Ordering::Relaxed) {
            return Err(Error::new(Code::ShutdownInProgress, "the server is shutting down"));
        }
        let (view, catalog) = core.capture();
        let collection =
            catalog.get(ns).filter(|c| ids.iter().all(|id| c.indexes.iter().any(|i| i.id == *id))).ok_or_else(
                || Error::new(Code::IndexBuildAborted, "the index or its collection was dropped during the build"),
            )?;
        let indexes: Vec<&Arc<Index>> = collection.indexes.iter().filter(|i| ids.contains(&i.id)).collect();
        let (_, high) = tree_range(collection.id);
        let mut scan = view.scan(&record_key(collection.id, next), &high, false)?;
        let mut batch = Batch::new();
        batch.guard(&collection.guard_key());
        let (mut read, mut last, mut multikey) = (0, None, false);
        // Entries of unique indexes in this step, by key: the record that has it.
        let mut own: HashMap<Vec<u8>, RecordId> = HashMap::new();
        while read < step && scan.next()? {
            let record = record_at_end(scan.key());
            batch.guard(scan.key());
            for index in &indexes {
                let keys = index_keys(index, RawDoc::trusted(scan.value()))?;
                check_keys(index, &keys, core.options.index_key_bytes_max)?;
                for (encoded, types) in &keys.entries {
                    let entry = Entry::new(index.id, &index.spec, encoded, types, record);
                    if index.spec.unique {
                        let there = match own.insert(entry.key.clone(), record) {
                            Some(there) => Some(there),
                            None => view.get(&entry.key)?.map(|value| record_at_start(&value)),
                        };
                        if there.is_some_and(|there| there != record) {
                            return Err(duplicate_key(collection, index, encoded, types));
                        }
                    }
                    batch.put(&entry.key, &entry.value);
                }
                multikey |= index.note_multikey(keys.multikey);
            }
            read += 1;
            last = Some(record);
        }
        let Some(last) = last else { return Ok(()) };
        let delta = Delta { multikey, ..Delta::of(collection.clone()) };
        match core.commit(&mut batch, Some(&view), &Deltas::from([(collection.id, delta)]))? {
            Some(_) => {
                next = last + 1;
                step = STEP;
                progress.done.fetch_add(read as u64, Ordering::Relaxed);
            }
            None => step = (step / 2).max(1),
        }
    }
}
