//! Figures: counts, sizes, the state of the key-value engine.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use espalier_store::{CollStats, DatabaseInfo, Namespace};
use espalier_value::{Code, DocBuf, Error, Result, ValueRef};

use crate::catalog::{Catalog, Collection, Counts};
use crate::core::Core;
use crate::layout::tree_range;
use crate::view::View;

/// Exact at the view's snapshot: every commit stores the counts it leads to.
pub fn counts(view: &View, collection: &Collection) -> Result<Counts> {
    Ok(view.get(&collection.counts_key())?.map_or_else(Counts::default, |bytes| Counts::from_bytes(&bytes)))
}

fn tree_bytes(view: &View, tree: u64) -> u64 {
    let (low, high) = tree_range(tree);
    view.snapshot().approximate_bytes(Bound::Included(&low), Bound::Excluded(&high))
}

pub fn collection(catalog: &Catalog, view: &View, ns: &Namespace) -> Result<CollStats> {
    let Some(collection) = catalog.get(ns) else {
        return Err(Error::new(Code::NamespaceNotFound, format!("Collection [{ns}] not found.")));
    };
    let counts = counts(view, collection)?;
    Ok(CollStats {
        count: counts.documents.max(0) as u64,
        size: counts.bytes.max(0) as u64,
        storage_size: tree_bytes(view, collection.id),
        index_sizes: collection.indexes.iter().map(|i| (i.spec.name.clone(), tree_bytes(view, i.id))).collect(),
        index_builds: collection.indexes.iter().filter(|i| i.building).map(|i| i.spec.name.clone()).collect(),
        capped: collection.options.capped,
        patterns: None,
    })
}

pub fn databases(catalog: &Catalog, view: &View) -> Result<Vec<DatabaseInfo>> {
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for collection in catalog.iter() {
        let bytes = tree_bytes(view, collection.id)
            + collection.indexes.iter().map(|i: &Arc<crate::catalog::Index>| tree_bytes(view, i.id)).sum::<u64>();
        *found.entry(collection.ns.db()).or_default() += bytes;
    }
    // A database is there as long as it has a collection, with documents or not.
    let info = |(name, size_on_disk): (&str, u64)| DatabaseInfo { name: name.to_string(), size_on_disk, empty: false };
    Ok(found.into_iter().map(info).collect())
}

/// `serverStatus.espalier.storage`.
pub fn status(core: &Core) -> DocBuf {
    let stats = core.kv.stats();
    let mut doc = DocBuf::new();
    doc.append("memtableBytes", stats.memtable_bytes as i64)
        .append("frozenMemtableBytes", stats.frozen_bytes as i64)
        .append("diskBytes", stats.run_bytes as i64)
        .append("runMemoryBytes", stats.run_memory_bytes as i64)
        .append("cacheBytes", stats.cache_bytes as i64)
        .append("cacheHits", stats.cache_hits as i64)
        .append("cacheMisses", stats.cache_misses as i64)
        .append("historyFrom", ValueRef::Timestamp(stats.history_stamp))
        .append("commits", stats.seq as i64)
        .append("logSyncs", stats.log_syncs as i64)
        .append("loggedBytes", stats.logged_bytes as i64)
        .append("historyBytes", stats.history_bytes as i64)
        .append("flushes", stats.flushes as i64)
        .append("compactions", stats.compactions as i64)
        .append("pendingCompactionBytes", stats.pending_compaction_bytes as i64)
        .append("throttledMicros", stats.throttled_micros as i64)
        .append("writesStopped", stats.is_poisoned);
    let mut levels = espalier_value::ArrayBuf::new();
    for level in &stats.levels {
        let mut entry = DocBuf::new();
        entry
            .append("runs", level.runs as i64)
            .append("bytes", level.bytes as i64)
            .append("entries", level.entries as i64)
            .append("tombstones", level.tombstones as i64);
        levels.push(&entry);
    }
    doc.append("levels", &levels);
    doc
}
