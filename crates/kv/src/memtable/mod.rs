//! The memtable: recent commits in memory, every version of every key, in key order.
//!
//! A skip list in an arena with exactly one writer (the holder of `MemtableWriter`) and any
//! number of readers that take no lock. Versions of a key lie next to each other, newest first.

mod arena;
mod cursor;
mod near;
mod node;
mod way;
mod writer;

pub(crate) use arena::ChunkPool;
pub(crate) use cursor::MemCursor;
pub(crate) use near::NearTable;
pub(crate) use writer::MemtableWriter;

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arena::Chunk;
use node::{HEIGHT_MAX, Node};

use crate::hash::hash64;
use crate::run::MemBloom;
use crate::sync::lock;

pub(crate) struct Memtable {
    /// Consecutive: the table frozen after this one has the next id.
    pub(crate) id: u64,
    /// The first log segment with commits of this table, and where that segment starts.
    pub(crate) first_segment: u64,
    pub(crate) first_lsn: u64,
    head: Node,
    /// Owns the memory of all nodes.
    chunks: Mutex<Vec<Chunk>>,
    pool: Arc<ChunkPool>,
    bloom: MemBloom,
    bytes: AtomicUsize,
    entries: AtomicUsize,
    seq_max: AtomicU64,
    /// Trees dropped by commits in this table, with the commit's number.
    drops: Mutex<Vec<(u64, u64)>>,
}

// SAFETY: nodes are reached through `Acquire` loads of links stored with `Release` after the
// node was fully written; they are freed only when the table is dropped.
unsafe impl Send for Memtable {}
// SAFETY: as above.
unsafe impl Sync for Memtable {}

/// A version found in a memtable.
#[derive(Clone, Copy)]
pub(crate) struct MemEntry<'a> {
    node: Node,
    table: &'a Memtable,
}

impl<'a> MemEntry<'a> {
    pub(crate) fn seq(&self) -> u64 {
        self.node.seq()
    }

    pub(crate) fn key(&self) -> &'a [u8] {
        self.node.key()
    }

    pub(crate) fn value(&self) -> Option<&'a [u8]> {
        self.node.value()
    }
}

/// A value that keeps its memtable alive.
#[derive(Clone)]
pub(crate) struct MemValue {
    node: Node,
    _table: Arc<Memtable>,
}

// SAFETY: the node is immutable apart from its links, and the table it lives in is held.
unsafe impl Send for MemValue {}
// SAFETY: as above.
unsafe impl Sync for MemValue {}

impl MemValue {
    pub(crate) fn new(table: &Arc<Memtable>, entry: &MemEntry<'_>) -> MemValue {
        debug_assert!(std::ptr::eq(entry.table, &**table));
        MemValue { node: entry.node, _table: table.clone() }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.node.value().unwrap_or_default()
    }
}

impl Memtable {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries() == 0 && lock(&self.drops).is_empty()
    }

    /// The newest commit in this table, 0 if there is none.
    pub(crate) fn seq_max(&self) -> u64 {
        self.seq_max.load(Ordering::Acquire)
    }

    pub(crate) fn drops(&self) -> Vec<(u64, u64)> {
        lock(&self.drops).clone()
    }

    /// `false` is certain for every entry that the caller may see. `hash` is the key's `hash64`.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.bloom.may_contain(hash)
    }

    /// The newest version of `key` that is not newer than `seq`; `hash` is the key's `hash64`.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], hash: u64, seq: u64) -> Option<MemEntry<'_>> {
        if !self.may_contain(hash) {
            return None;
        }
        let node = self.seek(key, seq)?;
        (node.key() == key).then_some(MemEntry { node, table: self })
    }

    /// The commit number of the newest version of `key`.
    pub(crate) fn newest(&self, key: &[u8]) -> Option<u64> {
        self.get(key, hash64(key), u64::MAX).map(|entry| entry.seq())
    }

    /// Every version of every key, in order, of a key newest first: what a flush writes out.
    pub(crate) fn all_entries(&self) -> impl Iterator<Item = MemEntry<'_>> {
        let mut next = self.head.next(0);
        std::iter::from_fn(move || {
            let node = next?;
            next = node.next(0);
            Some(MemEntry { node, table: self })
        })
    }

    /// An estimate of the bytes between two bounds, from a sparse level of the skip list.
    pub(crate) fn approximate_bytes(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
        const SAMPLES: u64 = 16;
        let entries = self.entries() as u64;
        if entries == 0 {
            return 0;
        }
        let start = match lower {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        let mut found = 0;
        for level in (0..HEIGHT_MAX).rev() {
            found = self.count_on_level(level, start, upper) << (2 * level);
            if found >> (2 * level) >= SAMPLES {
                break;
            }
        }
        found.min(entries) * (self.bytes() as u64) / entries
    }

    fn count_on_level(&self, level: usize, start: &[u8], upper: Bound<&[u8]>) -> u64 {
        let mut node = self.predecessor(start, u64::MAX, level).next(level);
        let mut count = 0;
        while let Some(at) = node {
            let within = match upper {
                Bound::Included(key) => at.key() <= key,
                Bound::Excluded(key) => at.key() < key,
                Bound::Unbounded => true,
            };
            if !within {
                break;
            }
            count += 1;
            node = at.next(level);
        }
        count
    }

    /// The last node of `level` before (key, seq), or the head.
    fn predecessor(&self, key: &[u8], seq: u64, level: usize) -> Node {
        let mut node = self.head;
        for level in (level..HEIGHT_MAX).rev() {
            while let Some(next) = node.next(level)
                && next.is_before(key, seq)
            {
                node = next;
            }
        }
        node
    }

    /// The first node at or after (key, seq). Each link is read once: the node returned is the
    /// very one that was compared, since by the next look the writer may have put a newer
    /// version of the key in front of it.
    fn seek(&self, key: &[u8], seq: u64) -> Option<Node> {
        let mut node = self.head;
        let mut next = None;
        for level in (0..HEIGHT_MAX).rev() {
            loop {
                next = node.next(level);
                match next {
                    Some(at) if at.is_before(key, seq) => node = at,
                    _ => break,
                }
            }
        }
        next
    }

    /// The last node whose key is below `key`.
    fn seek_below(&self, key: &[u8]) -> Option<Node> {
        let node = self.predecessor(key, u64::MAX, 0);
        (node != self.head).then_some(node)
    }

    fn last(&self) -> Option<Node> {
        let mut node = self.head;
        for level in (0..HEIGHT_MAX).rev() {
            while let Some(next) = node.next(level) {
                node = next;
            }
        }
        (node != self.head).then_some(node)
    }
}

impl Drop for Memtable {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut lock(&self.chunks)));
    }
}
