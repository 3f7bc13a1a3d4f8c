//! Versions: which runs are in which level, and the state a reader needs to see everything.
//! Both are immutable; a change makes a new one and old readers keep theirs.

use std::collections::{BTreeMap, HashSet};
use std::ops::{Bound, Range};
use std::sync::Arc;

use crate::Result;
use crate::cache::Use;
use crate::memtable::Memtable;
use crate::options::LEVELS_MAX;
use crate::past::PastCursor;
use crate::run::{Found, Level, Run, RunMeta};

/// Level 0 may overlap and is ordered newest first; the others are sorted and do not overlap.
/// Of two versions of a key the one in the lower-numbered level is newer.
#[derive(Clone)]
pub(crate) struct Version {
    levels: Vec<Arc<Level>>,
    /// Each run of level 0 as a level of its own, for cursors.
    singles: Vec<Arc<Level>>,
    /// Past runs, each as a level of its own.
    past: Vec<Arc<Level>>,
}

/// A change of the runs.
#[derive(Default)]
pub(crate) struct Edit {
    /// Run ids.
    pub(crate) remove: HashSet<u64>,
    /// A run that is removed and added has moved.
    pub(crate) add: Vec<(usize, Arc<Run>)>,
    /// Past runs.
    pub(crate) past: Vec<Arc<Run>>,
}

impl Version {
    pub(crate) fn new(mut levels: Vec<Vec<Arc<Run>>>, past: Vec<Arc<Level>>) -> Version {
        levels.resize_with(LEVELS_MAX + 1, Vec::new);
        let singles = levels[0].iter().map(|run| Level::new(vec![run.clone()])).collect();
        let mut levels = levels.into_iter();
        let level0 = Level::unsorted(levels.next().unwrap_or_default());
        let levels = std::iter::once(level0).chain(levels.map(Level::new)).collect();
        Version { levels, singles, past }
    }

    /// The past runs, each as a level of its own.
    pub(crate) fn past(&self) -> &[Arc<Level>] {
        &self.past
    }

    pub(crate) fn past_metas(&self) -> Vec<RunMeta> {
        self.past.iter().flat_map(|run| run.iter()).map(|run| run.meta.clone()).collect()
    }

    /// The runs of level 0, newest first, as levels of one run.
    pub(crate) fn singles(&self) -> &[Arc<Level>] {
        &self.singles
    }

    pub(crate) fn levels(&self) -> &[Arc<Level>] {
        &self.levels
    }

    pub(crate) fn level(&self, level: usize) -> &Arc<Level> {
        &self.levels[level]
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = (usize, &Arc<Run>)> {
        let levels = self.levels.iter().enumerate();
        levels.flat_map(|(level, runs)| runs.iter().map(move |run| (level, run)))
    }

    pub(crate) fn metas(&self) -> Vec<Vec<RunMeta>> {
        let metas = |runs: &Arc<Level>| runs.iter().map(|run| run.meta.clone()).collect();
        self.levels.iter().map(metas).collect()
    }

    pub(crate) fn level_bytes(&self, level: usize) -> u64 {
        self.levels[level].iter().map(|run| run.meta.bytes).sum()
    }

    /// `past` are the past runs that there are from now on.
    pub(crate) fn apply(&self, edit: &Edit, past: Vec<Arc<Level>>) -> Version {
        let mut levels: Vec<Vec<Arc<Run>>> = self
            .levels
            .iter()
            .map(|runs| {
                let stays = |run: &&Arc<Run>| !edit.remove.contains(&run.meta.id);
                runs.iter().filter(stays).cloned().collect()
            })
            .collect();
        for (level, run) in &edit.add {
            let runs = &mut levels[*level];
            let at = match level {
                0 => 0,
                _ => runs.partition_point(|other| other.meta.key_min < run.meta.key_min),
            };
            runs.insert(at, run.clone());
        }
        Version::new(levels, past)
    }

    /// How many runs of level 0 a reader may have to look into for one key.
    pub(crate) fn level0_depth(&self) -> usize {
        let runs = &self.levels[0];
        let overlapping = |run: &Arc<Run>| {
            let meta = &run.meta;
            let others = runs.iter();
            others.filter(|other| other.meta.overlaps(&meta.key_min, &meta.key_max)).count()
        };
        runs.iter().map(overlapping).max().unwrap_or(0)
    }

    /// The runs of a sorted level that overlap a closed range.
    pub(crate) fn overlapping(&self, level: usize, key_min: &[u8], key_max: &[u8]) -> Range<usize> {
        self.levels[level].within(Bound::Included(key_min), Bound::Included(key_max))
    }

    /// Whether a run below `level` may have the key.
    pub(crate) fn is_covered_below(&self, level: usize, key: &[u8]) -> bool {
        (level + 1..self.levels.len()).any(|deeper| self.levels[deeper].covering(key).is_some())
    }

    /// The newest entry of `key` among runs that have commits after `since`.
    pub(crate) fn get(&self, key: &[u8], hash: u64, since: u64) -> Result<Option<Found>> {
        for run in self.levels[0].iter() {
            if run.meta.seq_max > since
                && run.meta.covers(key)
                && let Some(found) = run.get(key, hash)?
            {
                return Ok(Some(found));
            }
        }
        for level in &self.levels[1..] {
            // Whether the run starts before the key is left to its filter: one look less.
            if let Some(run) = level.get(level.find(key))
                && run.meta.seq_max > since
                && let Some(found) = run.get(key, hash)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The newest entry of `key` up to commit `at`, which the past runs go back to.
    pub(crate) fn get_at(&self, key: &[u8], hash: u64, at: u64) -> Result<Option<Found>> {
        let mut newest = self.present_at(key, hash, at)?;
        for run in &self.past {
            if !run.iter().any(|run| run.meta.seq_max > at && run.may_contain(hash)) {
                continue;
            }
            let mut cursor = PastCursor::new(run.clone(), at, Use::Get);
            if cursor.find(key)? && newest.as_ref().is_none_or(|found| found.seq < cursor.seq()) {
                newest = cursor.found();
            }
        }
        Ok(newest)
    }

    /// The newest entry of `key` up to commit `at` in the levels.
    fn present_at(&self, key: &[u8], hash: u64, at: u64) -> Result<Option<Found>> {
        let level0 = self.levels[0].iter().filter(|run| run.meta.covers(key));
        let deeper = self.levels[1..].iter().filter_map(|level| level.get(level.find(key)));
        for run in level0.chain(deeper) {
            if let Some(found) = run.get(key, hash)?
                && found.seq <= at
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Everything a snapshot needs: where the newest data is, down to the oldest.
#[derive(Clone)]
pub(crate) struct Superversion {
    pub(crate) active: Arc<Memtable>,
    /// Full memtables on their way to disk, newest first.
    pub(crate) frozen: Vec<Arc<Memtable>>,
    pub(crate) version: Arc<Version>,
    /// Dropped trees that may still have keys somewhere, with the commit that dropped them.
    pub(crate) dropped: Arc<BTreeMap<u64, u64>>,
    /// The first commit whose state can still be read.
    pub(crate) floor: u64,
}

impl Superversion {
    /// The last commit in anything but the active memtable.
    pub(crate) fn settled_seq(&self) -> u64 {
        match self.frozen.first() {
            Some(table) => table.seq_max(),
            None => self.version.runs().map(|(_, run)| run.meta.seq_max).max().unwrap_or(0),
        }
    }

    /// Newest first.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }
}
