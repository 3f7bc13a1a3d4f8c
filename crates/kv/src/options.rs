//! Every tunable and every limit of the engine, in one place.

use std::time::Duration;

/// The longest key. An index key over a whole 16 MiB document still fits.
pub const KEY_BYTES_MAX: usize = 32 << 20;
/// The longest value.
pub const VALUE_BYTES_MAX: usize = 256 << 20;
/// The largest batch, counted as it is written to the log.
pub const BATCH_BYTES_MAX: usize = 1 << 30;
/// Levels below the overlapping one.
pub(crate) const LEVELS_MAX: usize = 7;
/// Commits wait when this many full memtables are not yet on disk: bounds memory and replay.
pub(crate) const FROZEN_TABLES_MAX: usize = 10;
/// Commits wait when this much of the log is not yet handed to the operating system.
pub(crate) const LOG_PENDING_BYTES_MAX: usize = 16 << 20;
/// A commit that finds more than this waiting hands it to the operating system itself.
pub(crate) const LOG_WRITE_BYTES: usize = 256 << 10;
/// A commit nobody waits for reaches the operating system within this time…
pub(crate) const LOG_WRITE_EVERY: Duration = Duration::from_millis(10);
/// …and the disk within this time.
pub(crate) const LOG_SYNC_EVERY: Duration = Duration::from_millis(100);
/// A tree that fills at least this much of a run gets files of its own, so that they can
/// move down the levels, or be dropped, without being rewritten.
pub(crate) const TREE_OWN_FILE_BYTES: u64 = 4 << 20;

/// How blocks are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Lz4,
}

#[derive(Debug, Clone)]
pub struct Options {
    /// A memtable of this size is frozen and written out as runs.
    pub memtable_bytes: usize,
    /// Entries of a run are grouped into blocks of about this size before compression.
    pub block_bytes: usize,
    /// Upper bound of the block cache.
    pub cache_bytes: usize,
    /// Target size of one run file.
    pub run_bytes: u64,
    /// Overlapping runs in level 0 that start a compaction.
    pub level0_runs: usize,
    /// Size of level 1; each level below is `level_ratio` times larger.
    pub level1_bytes: u64,
    pub level_ratio: u64,
    pub compression: Compression,
    /// Tombstones younger than this survive compaction, so that a transaction of that age
    /// still notices a deleted key exactly instead of being told to retry.
    pub tombstone_retention: Duration,
    /// The log is kept as history up to this size, and up to this age, whichever is reached first; whole segments of
    /// about the size of a memtable, and never less than recovery needs.
    pub history_bytes: u64,
    pub history_age: Duration,
    /// The database can be read as it was this long ago, as far as the versions that this keeps take no more bytes.
    pub past_age: Duration,
    pub past_bytes: u64,
    /// Trees that nobody reads as they were.
    pub past_less_trees: Vec<u64>,
    /// Whether flushes and compactions run by themselves; tests turn this off.
    pub background: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            memtable_bytes: 32 << 20,
            block_bytes: 16 << 10,
            cache_bytes: 256 << 20,
            run_bytes: 32 << 20,
            level0_runs: 4,
            level1_bytes: 256 << 20,
            level_ratio: 10,
            compression: Compression::Lz4,
            tombstone_retention: Duration::from_secs(60),
            history_bytes: 1 << 30,
            history_age: Duration::from_secs(24 * 3600),
            past_age: Duration::from_secs(300),
            past_bytes: 1 << 30,
            past_less_trees: Vec::new(),
            background: true,
        }
    }
}

impl Options {
    /// Everything small enough that a test reaches every level within a few hundred writes.
    pub fn tiny() -> Options {
        Options {
            memtable_bytes: 4 << 10,
            block_bytes: 256,
            cache_bytes: 64 << 10,
            run_bytes: 2 << 10,
            level0_runs: 2,
            level1_bytes: 4 << 10,
            level_ratio: 3,
            compression: Compression::Lz4,
            tombstone_retention: Duration::ZERO,
            history_bytes: 32 << 10,
            history_age: Duration::from_secs(3600),
            past_age: Duration::from_secs(3600),
            past_bytes: 32 << 10,
            past_less_trees: Vec::new(),
            background: true,
        }
    }

    pub(crate) fn level_bytes(&self, level: usize) -> u64 {
        let exponent = u32::try_from(level.saturating_sub(1)).unwrap_or(u32::MAX);
        self.level1_bytes.saturating_mul(self.level_ratio.saturating_pow(exponent))
    }

    pub(crate) fn own_file_bytes(&self) -> u64 {
        TREE_OWN_FILE_BYTES.min(self.run_bytes / 2)
    }
}
