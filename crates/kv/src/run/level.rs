//! Runs in key order that do not overlap, and a fast way to the one that may hold a key.

use std::ops::{Bound, Deref, Range};
use std::sync::Arc;

use super::Run;
use crate::key_table::KeyTable;

pub(crate) struct Level {
    runs: Vec<Arc<Run>>,
    /// The last key of each.
    key_max: KeyTable,
}

impl Level {
    pub(crate) fn new(runs: Vec<Arc<Run>>) -> Arc<Level> {
        let keys = runs.iter().map(|run| &*run.meta.key_max);
        // Over 4 GiB of bounds: thousands of runs with keys of megabytes each. A table of
        // shortened keys would do; until then the search falls back to the runs themselves.
        let key_max = KeyTable::new(keys).unwrap_or_default();
        Arc::new(Level { runs, key_max })
    }

    /// Runs that overlap: searches in it mean nothing.
    pub(crate) fn unsorted(runs: Vec<Arc<Run>>) -> Arc<Level> {
        Arc::new(Level { runs, key_max: KeyTable::default() })
    }

    /// The first run that ends at or after `key`; `len()` if there is none.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        if self.key_max.len() == self.runs.len() {
            self.key_max.find(key)
        } else {
            self.runs.partition_point(|run| *run.meta.key_max < *key)
        }
    }

    /// The run whose range covers `key`.
    #[inline]
    pub(crate) fn covering(&self, key: &[u8]) -> Option<&Arc<Run>> {
        let run = self.runs.get(self.find(key))?;
        (*run.meta.key_min <= *key).then_some(run)
    }

    /// The first run that starts after `key`, or at it unless `inclusive`.
    pub(crate) fn past(&self, key: &[u8], inclusive: bool) -> usize {
        let at = self.find(key);
        let starts_before =
            self.runs.get(at).is_some_and(|run| *run.meta.key_min < *key || (inclusive && *run.meta.key_min == *key));
        at + usize::from(starts_before)
    }

    /// The runs that may have keys within the bounds.
    pub(crate) fn within(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Range<usize> {
        let start = match lower {
            Bound::Included(key) => self.find(key),
            Bound::Excluded(key) => {
                let at = self.find(key);
                let ends_there = |run: &Arc<Run>| *run.meta.key_max == *key;
                at + usize::from(self.runs.get(at).is_some_and(ends_there))
            }
            Bound::Unbounded => 0,
        };
        let end = match upper {
            Bound::Included(key) => self.past(key, true),
            Bound::Excluded(key) => self.past(key, false),
            Bound::Unbounded => self.runs.len(),
        };
        start..end.max(start)
    }
}

impl Deref for Level {
    type Target = [Arc<Run>];

    fn deref(&self) -> &[Arc<Run>] {
        &self.runs
    }
}
