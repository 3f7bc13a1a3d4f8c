//! Reading at a time that has been (`atClusterTime`): the storage engine still has every version, and the catalog of then
//! is put together from its entries as they were.
//!
//! A collection that is the same one now as then is read with the indexes that it had then and still has. One that came,
//! went or changed its name or its layer since cannot be read: its trees may be gone.

use std::collections::HashSet;
use std::sync::Arc;

use espalier_store::Namespace;
use espalier_value::{Code, Error, RawDoc, Result};

use crate::catalog::{Catalog, Collection, Index, Live, persist};
use crate::core::Core;
use crate::layout::{self, tree_range};
use crate::view::View;

/// What could be seen at a time; without one, the newest.
pub fn at(core: &Core, time: Option<u64>) -> Result<(u64, View, Arc<Catalog>)> {
    let time = time.unwrap_or_else(|| core.kv.stamp());
    let Some(snapshot) = core.kv.snapshot_at(time) else {
        return Err(Error::new(
            Code::SnapshotTooOld,
            format!("Read timestamp {} is older than the oldest available timestamp.", shown(time)),
        ));
    };
    let view = View::new(snapshot);
    // After the snapshot: what is the same in both has been there all the time between.
    let (current, changed_at) = core.dated_catalog();
    if changed_at <= time {
        return Ok((time, view, current));
    }
    let catalog = catalog_at(&view, &current, time)?;
    Ok((time, view, Arc::new(catalog)))
}

/// The error of a collection that is not the one it was.
pub fn unavailable(time: u64) -> Error {
    Error::new(
        Code::SnapshotUnavailable,
        format!(
            "Unable to read from a snapshot due to pending collection catalog changes; please retry the operation. \
             Snapshot timestamp is {}",
            shown(time)
        ),
    )
}

fn shown(time: u64) -> String {
    format!("Timestamp({}, {})", time >> 32, time as u32)
}

fn catalog_at(view: &View, current: &Catalog, time: u64) -> Result<Catalog> {
    let mut catalog = Catalog::default();
    let mut changed: HashSet<Namespace> = current.iter().map(|collection| collection.ns.clone()).collect();
    let (low, high) = tree_range(layout::CATALOG);
    let mut entries = view.scan(&low, &high, false)?;
    while entries.next()? {
        let then = persist::decode(RawDoc::trusted(entries.value()), |_| Ok(Live::default()))?;
        match current.get(&then.ns).and_then(|now| same(then.clone(), now)) {
            Some(collection) => {
                changed.remove(&collection.ns);
                catalog.put(Arc::new(collection));
            }
            None => {
                changed.insert(then.ns);
            }
        }
    }
    catalog.set_changed(time, changed);
    Ok(catalog)
}

/// The collection as it was, with what changes in it without the catalog changing; `None` if it is not the same one.
fn same(then: Collection, now: &Collection) -> Option<Collection> {
    let layer = |of: &Collection| of.options.layer.as_ref().map(|layer| layer.options().as_bytes().to_vec());
    if then.id != now.id || layer(&then) != layer(now) {
        return None;
    }
    let there = |then: &Arc<Index>| {
        // Entries of an index that was being built then are not whole.
        let found = now.indexes.iter().find(|now| now.id == then.id && !then.building)?;
        Some(Arc::new(found.with(then.spec.clone(), false)))
    };
    let indexes = then.indexes.iter().filter_map(there).collect();
    Some(Collection { indexes, live: now.live.clone(), ..then })
}
