//! Snapshots that clients may come back to (`atClusterTime`), by their time. Kept for a while and few at once: each holds
//! the memory and files that it sees.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use espalier_value::{Code, Error, Result};

use crate::catalog::Catalog;
use crate::core::{Core, lock};
use crate::view::View;

/// More than this many are not kept, however young.
const KEPT_MAX: usize = 16;

#[derive(Default)]
pub struct Past {
    kept: Mutex<VecDeque<Kept>>,
}

#[derive(Clone)]
struct Kept {
    time: u64,
    since: Instant,
    view: View,
    catalog: Arc<Catalog>,
}

impl Past {
    /// The snapshot of a time; without one, the newest, which is kept from now on.
    pub fn at(&self, core: &Core, time: Option<u64>) -> Result<(u64, View, Arc<Catalog>)> {
        let (view, catalog) = core.capture();
        let newest = view.snapshot().stamp();
        let mut kept = lock(&self.kept);
        let wanted = time.unwrap_or(newest);
        if let Some(found) = kept.iter().find(|kept| kept.time == wanted) {
            return Ok((found.time, found.view.clone(), found.catalog.clone()));
        }
        if wanted < newest {
            let message = "Snapshot timestamp is older than the history that is kept, or no snapshot was taken then; \
                           read at a newer one, or raise --snapshot-seconds";
            return Err(Error::new(Code::SnapshotTooOld, message));
        }
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(Kept { time: wanted, since: Instant::now(), view: view.clone(), catalog: catalog.clone() });
        Ok((wanted, view, catalog))
    }

    /// Lets go of what is older than this.
    pub fn forget(&self, age: Duration) {
        let mut old = Vec::new();
        let mut kept = lock(&self.kept);
        while kept.front().is_some_and(|first| first.since.elapsed() > age) {
            old.extend(kept.pop_front());
        }
        // What only they held is freed without anybody waiting for it.
        drop(kept);
        drop(old);
    }
}
