//! Choosing the next piece of work, the most urgent first.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::job::Job;
use crate::cache::Use;
use crate::options::{LEVELS_MAX, Options};
use crate::run::{Level, Run, RunCursor};
use crate::version::Version;
use crate::{Result, tree};

pub(super) enum Step {
    /// Runs that hold nothing but dropped trees.
    Remove(Vec<u64>),
    /// Runs that overlap nothing below, and the level they go to.
    Move(Vec<(usize, Arc<Run>)>),
    Merge(Job),
    /// Dropped trees of which no key is left.
    Purge(Vec<u64>),
}

/// A run of which at least one in this many entries is a tombstone is worth cleaning.
const TOMBSTONE_SHARE: u64 = 4;

/// Overlapping runs that are merged when there is nothing else to do.
const IDLE_LEVEL0_RUNS: usize = 2;

pub(super) fn pick(
    version: &Version,
    options: &Options,
    dropped: &BTreeMap<u64, u64>,
    old_seq: u64,
    is_idle: bool,
) -> Result<Option<Step>> {
    let level0_runs = if is_idle { IDLE_LEVEL0_RUNS.min(options.level0_runs) } else { options.level0_runs };
    if !dropped.is_empty()
        && let Some(step) = remove_dropped(version, dropped)
    {
        return Ok(Some(step));
    }
    if version.level(0).len() >= level0_runs
        && let Some(step) = move_level0(version, options)
    {
        return Ok(Some(step));
    }
    if version.level0_depth() >= level0_runs {
        return Ok(merge_level0(version));
    }
    if let Some(step) = shrink_level(version, options) {
        return Ok(Some(step));
    }
    clean(version, dropped, old_seq, TOMBSTONE_SHARE)
}

/// Files of a dropped tree go without being read.
fn remove_dropped(version: &Version, dropped: &BTreeMap<u64, u64>) -> Option<Step> {
    let is_gone = |run: &Arc<Run>| {
        let first = tree::of(&run.meta.key_min);
        first == tree::of(&run.meta.key_max)
            && first.and_then(|tree| dropped.get(&tree)).is_some_and(|&seq| run.meta.seq_max <= seq)
    };
    let gone: Vec<u64> = version.runs().filter(|(_, run)| is_gone(run)).map(|(_, run)| run.meta.id).collect();
    (!gone.is_empty()).then_some(Step::Remove(gone))
}

/// Runs of level 0 that overlap neither an older one there nor anything in level 1 go down as
/// they are: most of what an append-only tree ever needs.
fn move_level0(version: &Version, options: &Options) -> Option<Step> {
    let level0 = version.level(0);
    let mut moves: Vec<(usize, Arc<Run>)> = Vec::new();
    let mut added = [0u64; LEVELS_MAX + 1];
    for (at, run) in level0.iter().enumerate().rev() {
        let (min, max) = (&*run.meta.key_min, &*run.meta.key_max);
        // Older runs that move along are in the way only if they end up in the same place.
        let is_blocked = level0[at + 1..].iter().any(|o| o.meta.overlaps(min, max));
        if is_blocked || !version.overlapping(1, min, max).is_empty() {
            continue;
        }
        let mut level = 1;
        while level < LEVELS_MAX
            && version.level_bytes(level) + added[level] >= options.level_bytes(level)
            && version.overlapping(level + 1, min, max).is_empty()
        {
            level += 1;
        }
        added[level] += run.meta.bytes;
        moves.push((level, run.clone()));
    }
    (!moves.is_empty()).then_some(Step::Move(moves))
}

/// The oldest run of level 0 with all that it overlaps there, directly or through others.
fn merge_level0(version: &Version) -> Option<Step> {
    let level0 = version.level(0);
    // The one that most others overlap is the one that readers suffer from.
    let depth = |run: &Arc<Run>| {
        let others = level0.iter();
        others.filter(|o| o.meta.overlaps(&run.meta.key_min, &run.meta.key_max)).count()
    };
    let seed = level0.iter().max_by_key(|run| depth(run))?;
    Some(Step::Merge(level0_job(version, seed)))
}

fn level0_job(version: &Version, seed: &Arc<Run>) -> Job {
    let level0 = version.level(0);
    let mut key_min = seed.meta.key_min.clone();
    let mut key_max = seed.meta.key_max.clone();
    loop {
        let chosen = level0.iter().filter(|r| r.meta.overlaps(&key_min, &key_max));
        let (mut min, mut max) = (key_min.clone(), key_max.clone());
        for run in chosen {
            min = min.min(run.meta.key_min.clone());
            max = max.max(run.meta.key_max.clone());
        }
        if (&min, &max) == (&key_min, &key_max) {
            break;
        }
        (key_min, key_max) = (min, max);
    }
    let uppers = level0.iter().filter(|r| r.meta.overlaps(&key_min, &key_max));
    Job { upper_level: 0, uppers: uppers.cloned().collect(), output_level: 1 }
}

/// The level most over its size gives up the run that costs least to merge down.
fn shrink_level(version: &Version, options: &Options) -> Option<Step> {
    let fullness = |level: usize| {
        let target = options.level_bytes(level).max(1);
        version.level_bytes(level) as f64 / target as f64
    };
    let level = (1..LEVELS_MAX).max_by(|&a, &b| fullness(a).total_cmp(&fullness(b)))?;
    if fullness(level) <= 1.0 {
        return None;
    }
    let overlapped = |run: &Arc<Run>| {
        let range = version.overlapping(level + 1, &run.meta.key_min, &run.meta.key_max);
        let runs = version.level(level + 1)[range].iter();
        runs.map(|run| run.meta.bytes).sum::<u64>()
    };
    // All that can go without being rewritten go together, as long as the level is too large.
    let mut excess = version.level_bytes(level).saturating_sub(options.level_bytes(level));
    let mut moves = Vec::new();
    for run in version.level(level).iter() {
        if excess == 0 {
            break;
        }
        if overlapped(run) == 0 {
            excess = excess.saturating_sub(run.meta.bytes);
            moves.push((level + 1, run.clone()));
        }
    }
    if !moves.is_empty() {
        return Some(Step::Move(moves));
    }
    let cost = |run: &Arc<Run>| overlapped(run) as f64 / run.meta.bytes.max(1) as f64;
    let runs = version.level(level).iter();
    let run = runs.min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    Some(Step::Merge(Job { upper_level: level, uppers: vec![run.clone()], output_level: level + 1 }))
}

/// Work that frees space and is never urgent: keys of dropped trees, old tombstones at the
/// bottom. With a share of 0 a single tombstone is reason enough.
pub(super) fn clean(
    version: &Version,
    dropped: &BTreeMap<u64, u64>,
    old_seq: u64,
    tombstone_share: u64,
) -> Result<Option<Step>> {
    if let Some(&tree) = dropped.keys().next() {
        for (level, run) in version.runs() {
            if has_tree(run, tree)? {
                return Ok(Some(Step::Merge(match level {
                    // The order in level 0 is by age: nothing can be rewritten there in place.
                    0 => level0_job(version, run),
                    _ => in_place(level, run),
                })));
            }
        }
        return Ok(Some(Step::Purge(vec![tree])));
    }
    for (level, run) in version.runs().filter(|(level, _)| *level > 0) {
        let meta = &run.meta;
        let is_bottom =
            (level + 1..=LEVELS_MAX).all(|deeper| version.overlapping(deeper, &meta.key_min, &meta.key_max).is_empty());
        let is_worth =
            meta.tombstones > 0 && (tombstone_share == 0 || meta.tombstones >= meta.entries / tombstone_share);
        if is_worth && is_bottom && meta.seq_max <= old_seq {
            return Ok(Some(Step::Merge(in_place(level, run))));
        }
    }
    Ok(None)
}

fn in_place(level: usize, run: &Arc<Run>) -> Job {
    Job { upper_level: level, uppers: vec![run.clone()], output_level: level }
}

fn has_tree(run: &Arc<Run>, tree: u64) -> Result<bool> {
    let start = tree.to_be_bytes();
    let is_past = |end: [u8; 8]| *run.meta.key_min >= end[..];
    if *run.meta.key_max < start[..] || tree::end(tree).is_some_and(is_past) {
        return Ok(false);
    }
    let mut cursor = RunCursor::new(Level::new(vec![run.clone()]), 0..1, Use::Scan);
    cursor.seek(&start)?;
    Ok(cursor.is_valid() && tree::of(cursor.key()) == Some(tree))
}
