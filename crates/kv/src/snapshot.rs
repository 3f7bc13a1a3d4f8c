//! A snapshot: the database as it was after one commit, for as long as it is held.

use std::ops::Bound;
use std::sync::Arc;

use crate::bytes::Bytes;
use crate::cache::Use;
use crate::hash::hash64;
use crate::lookup::Lookup;
use crate::memtable::{MemCursor, MemValue};
use crate::merge::{Merge, Source};
use crate::past::{self, AsOf, PastCursor};
use crate::run::RunCursor;
use crate::scan::Scan;
use crate::version::Superversion;
use crate::{Direction, Result, tree};

/// Cheap to take and to clone. Holding one keeps the memtables and files it sees, never blocks
/// a writer, and goes on working after the engine was closed.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) state: Arc<Superversion>,
    pub(crate) seq: u64,
    pub(crate) stamp: u64,
    /// The state has newer commits than this one in more than its active memtable.
    pub(crate) is_past: bool,
}

impl Snapshot {
    /// The number of the last commit it sees.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// It sees every commit up to this stamp; of those that were being made when it was taken it may see more.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Whether the key's tree was dropped before this snapshot was taken.
    pub(crate) fn is_dropped(&self, key: &[u8]) -> bool {
        let dropped = &self.state.dropped;
        !dropped.is_empty() && tree::of(key).and_then(|tree| dropped.get(&tree)).is_some_and(|&seq| seq <= self.seq)
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if self.is_dropped(key) {
            return Ok(None);
        }
        let hash = hash64(key);
        for table in self.state.tables() {
            if let Some(entry) = table.get(key, hash, self.seq) {
                let value = entry.value().map(|_| MemValue::new(table, &entry));
                return Ok(value.map(Bytes::from_memory));
            }
        }
        let version = &self.state.version;
        let found = if self.is_past { version.get_at(key, hash, self.seq)? } else { version.get(key, hash, 0)? };
        Ok(found.and_then(|found| Some(Bytes::from_block(found.block, found.value?))))
    }

    /// For many [`Snapshot::get`]s of keys from `lower` up to and without `upper`, which are of one tree.
    pub fn lookup(&self, lower: &[u8], upper: &[u8]) -> Lookup {
        Lookup::new(self, lower, upper)
    }

    /// A cursor over the keys within the bounds. Call `next` for the first entry.
    pub fn scan(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, direction: Direction) -> Result<Scan> {
        let mut sources = Vec::new();
        for table in self.state.tables().filter(|table| table.entries() > 0) {
            sources.push(Source::Memory(MemCursor::new(table.clone(), self.seq)));
        }
        let version = &self.state.version;
        let runs = |cursor: RunCursor| match self.is_past {
            true => Source::AsOf(Box::new(AsOf { cursor, seq: self.seq })),
            false => Source::Runs(cursor),
        };
        for single in version.singles() {
            if !single.within(lower, upper).is_empty() {
                sources.push(runs(RunCursor::new(single.clone(), 0..1, Use::Scan)));
            }
        }
        for level in 1..version.levels().len() {
            let range = version.level(level).within(lower, upper);
            if !range.is_empty() {
                sources.push(runs(RunCursor::new(version.level(level).clone(), range, Use::Scan)));
            }
        }
        if self.is_past {
            let found = version.past().iter().filter(|run| past::may_show(run, lower, upper, self.seq));
            sources.extend(found.map(|run| Source::Past(Box::new(PastCursor::new(run.clone(), self.seq, Use::Scan)))));
        }
        let (start, end) = match direction {
            Direction::Forward => (lower, upper),
            Direction::Reverse => (upper, lower),
        };
        let mut merge = Merge::new(sources, direction, end.map(Box::from));
        if self.is_past {
            merge = merge.by_seq();
        }
        let dropped = self.state.dropped.clone();
        Ok(Scan::new(merge, direction, start.map(Box::from), dropped, self.seq))
    }

    /// Bytes stored between two bounds, to the nearest block; what is still in memory is
    /// estimated.
    pub fn approximate_bytes(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
        let tables = self.state.tables();
        let memory: u64 = tables.map(|t| t.approximate_bytes(lower, upper)).sum();
        let runs = self.state.version.runs();
        memory + runs.map(|(_, run)| run.approximate_bytes(lower, upper)).sum::<u64>()
    }
}
