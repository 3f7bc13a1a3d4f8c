//! Numbers about the state of the engine, for `serverStatus` and for tuning.

use std::sync::atomic::Ordering;

use crate::engine::Engine;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LevelStats {
    pub runs: usize,
    pub bytes: u64,
    pub entries: u64,
    pub tombstones: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// The last commit.
    pub seq: u64,
    /// The active memtable.
    pub memtable_bytes: usize,
    /// Full memtables that wait to be flushed.
    pub frozen_tables: usize,
    pub frozen_bytes: usize,
    /// From the overlapping level 0 down.
    pub levels: Vec<LevelStats>,
    pub run_bytes: u64,
    /// Memory of indexes and filters.
    pub run_memory_bytes: usize,
    pub cache_bytes: usize,
    pub cache_hits: u64,
    pub cache_misses: u64,
    /// Overlapping runs in level 0.
    pub level0_depth: usize,
    /// Bytes by which levels are over their size: what compaction has to do.
    pub pending_compaction_bytes: u64,
    /// Trees dropped but not yet gone from the runs.
    pub dropped_trees: usize,
    /// Log before the segment being written: what recovery needs, and history.
    pub history_bytes: u64,
    /// Commits with a greater stamp are in the history.
    pub history_stamp: u64,
    /// Versions that newer ones have displaced, kept to be read as of then.
    pub past_runs: usize,
    pub past_bytes: u64,
    /// The first commit whose state can still be read.
    pub past_seq: u64,
    pub log_syncs: u64,
    /// Bytes of all commits that the log ever had.
    pub logged_bytes: u64,
    pub flushes: u64,
    pub compactions: u64,
    /// How long commits were slowed down in total.
    pub throttled_micros: u64,
    /// A write has failed; only a restart helps.
    pub is_poisoned: bool,
}

impl Stats {
    pub(crate) fn collect(engine: &Engine) -> Stats {
        let state = engine.state();
        let version = &state.version;
        let levels: Vec<LevelStats> = version
            .levels()
            .iter()
            .map(|runs| LevelStats {
                runs: runs.len(),
                bytes: runs.iter().map(|run| run.meta.bytes).sum(),
                entries: runs.iter().map(|run| run.meta.entries).sum(),
                tombstones: runs.iter().map(|run| run.meta.tombstones).sum(),
            })
            .collect();
        let level0_depth = version.level0_depth();
        let over = |(level, stats): (usize, &LevelStats)| match level {
            0 if level0_depth >= engine.options.level0_runs => stats.bytes,
            0 => 0,
            _ => stats.bytes.saturating_sub(engine.options.level_bytes(level)),
        };
        let cache = &engine.context.cache;
        Stats {
            seq: engine.last_seq(),
            memtable_bytes: state.active.bytes(),
            frozen_tables: state.frozen.len(),
            frozen_bytes: state.frozen.iter().map(|table| table.bytes()).sum(),
            run_bytes: levels.iter().map(|level| level.bytes).sum(),
            run_memory_bytes: version.runs().map(|(_, run)| run.memory_bytes()).sum(),
            cache_bytes: cache.bytes(),
            cache_hits: cache.hits(),
            cache_misses: cache.misses(),
            level0_depth,
            pending_compaction_bytes: levels.iter().enumerate().map(over).sum(),
            dropped_trees: state.dropped.len(),
            history_bytes: engine.kept.bytes(),
            history_stamp: engine.kept.floor_stamp(),
            past_runs: version.past().len(),
            past_bytes: version.past_metas().iter().map(|run| run.bytes).sum(),
            past_seq: state.floor,
            log_syncs: engine.log.syncs(),
            logged_bytes: engine.log.commit_lsn(),
            flushes: engine.flushes.load(Ordering::Relaxed),
            compactions: engine.compactions.load(Ordering::Relaxed),
            throttled_micros: engine.throttle.slept_micros(),
            is_poisoned: engine.poison.is_set(),
            levels,
        }
    }
}
