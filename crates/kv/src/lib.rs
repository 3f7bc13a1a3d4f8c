//! An ordered key-value engine: bytes in, bytes out; snapshots, atomic commits with conflict
//! checks, durable by group commit. It knows nothing of documents.
//!
//! The walk of a write: `Batch` (already in log form) → `Kv::commit`: conflict check, a number,
//! a record in the log's buffer, entries in the active memtable, all under one short lock →
//! visible to new snapshots → `Kv::wait_durable`: one sync shared by all who wait. A full
//! memtable is frozen and flushed to runs in level 0; compaction merges runs down the levels,
//! moving files that overlap nothing without rewriting them.
//!
//! The walk of a read: `Kv::snapshot` takes the current superversion and commit number →
//! `get` looks in the memtables, then in runs from newest to oldest behind their bloom filters
//! → `scan` merges the same sources and lends keys and values from where they lie.
//!
//! Invariants:
//! - The commit lock is never held across input or output, except when a memtable is frozen
//!   before its next log segment was prepared.
//! - What is durable is a prefix of the commits; history shows nothing else, and never leaves one out.
//! - A snapshot never changes, whatever is flushed, compacted or dropped meanwhile.
//! - Every byte read from disk is checked against a checksum before it is used.
//! - After a failed write nothing more is acknowledged until a restart.
//!
//! docs/storage-format.md describes the files; docs/decisions/0001-storage-engine.md says why
//! this engine exists.

mod background;
mod batch;
mod bytes;
mod cache;
mod commit;
mod compact;
mod disk;
mod engine;
mod error;
mod flush;
mod hash;
mod key_table;
mod kv;
mod log;
mod lookup;
mod manifest;
mod memtable;
mod merge;
mod options;
mod past;
mod poison;
mod recover;
mod rng;
mod run;
mod scan;
mod snapshot;
mod stats;
mod sync;
mod throttle;
mod tree;
pub mod varint;
mod verify;
mod version;

pub use batch::{Batch, Entry, Relative};
pub use bytes::Bytes;
pub use commit::Commit;
pub use disk::{Disk, DiskFile, DiskLock, Fault, FaultyDisk, MemDisk, RealDisk};
pub use error::{CommitError, KvError, Result};
pub use kv::Kv;
pub use log::{History, Record};
pub use lookup::Lookup;
pub use options::{BATCH_BYTES_MAX, Compression, KEY_BYTES_MAX, Options, VALUE_BYTES_MAX};
pub use recover::Recovered;
pub use rng::Rng;
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use stats::{LevelStats, Stats};
pub use verify::{VerifyProgress, VerifyReport};

/// Which way a scan walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Reverse,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_may_go_to_other_threads() {
        fn shared<T: Send + Sync + Clone>() {}
        fn sent<T: Send>() {}
        shared::<Kv>();
        shared::<Snapshot>();
        shared::<Bytes>();
        sent::<Scan>();
        sent::<Lookup>();
        sent::<Batch>();
        sent::<KvError>();
    }
}
