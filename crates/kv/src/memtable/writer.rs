//! The one writer of a memtable.
//!
//! Record ids and log numbers grow, and a commit of many writes has most of them in order, so most inserts go right
//! behind the previous insert of the same tree or not far from it. The writer remembers that place ("finger") for a few
//! trees and goes on from there.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::arena::{Chunk, ChunkPool};
use super::node::{HEIGHT_MAX, Node};
use super::way::Way;
use super::{MemEntry, Memtable};
use crate::hash::hash64;
use crate::rng::Rng;
use crate::run::MemBloom;
use crate::sync::lock;
use crate::tree;

const FINGERS: usize = 16;
const ALIGN: usize = 8;

/// Where the last insert of a tree went.
struct Finger {
    tree: Option<u64>,
    way: Way,
}

/// The right to insert. There is one per table, made with it, so inserting needs no lock.
pub(crate) struct MemtableWriter {
    table: Arc<Memtable>,
    fingers: [Finger; FINGERS],
    room: NonNull<u8>,
    room_bytes: usize,
    rng: Rng,
}

// SAFETY: the pointers lead into the arena of `table`, which the writer holds.
unsafe impl Send for MemtableWriter {}

impl Memtable {
    pub(crate) fn create(pool: &Arc<ChunkPool>, id: u64, first_segment: u64, first_lsn: u64) -> MemtableWriter {
        let chunk = pool.take(Node::size(HEIGHT_MAX, 0, 0));
        let (start, chunk_bytes) = (chunk.start(), chunk.bytes());
        // SAFETY: the chunk is fresh, aligned and large enough.
        let head = unsafe { Node::write(start, HEIGHT_MAX, &[], 0, None) };
        let used = Node::size(HEIGHT_MAX, 0, 0).next_multiple_of(ALIGN);
        let table = Arc::new(Memtable {
            id,
            first_segment,
            first_lsn,
            head,
            chunks: Mutex::new(vec![chunk]),
            pool: pool.clone(),
            bloom: MemBloom::new(pool.memtable_bytes()),
            bytes: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            seq_max: AtomicU64::new(0),
            drops: Mutex::default(),
        });
        MemtableWriter {
            table,
            fingers: std::array::from_fn(|_| Finger { tree: None, way: Way::new(head) }),
            // SAFETY: `used` is within the chunk.
            room: unsafe { start.add(used) },
            room_bytes: chunk_bytes - used,
            rng: Rng::new(id),
        }
    }
}

impl MemtableWriter {
    pub(crate) fn table(&self) -> &Arc<Memtable> {
        &self.table
    }

    /// Adds a version. Of two with the same key and number the later insert wins.
    pub(crate) fn insert(&mut self, key: &[u8], seq: u64, value: Option<&[u8]>) -> MemEntry<'_> {
        let height = self.height();
        let size = Node::size(height, key.len(), value.map_or(0, <[u8]>::len));
        let at = self.allocate(size);
        // SAFETY: `allocate` gave aligned room of this size; lengths are bounded by the limits
        // checked when the batch was made.
        let node = unsafe { Node::write(at, height, key, seq, value) };
        self.table.bloom.add(hash64(key));
        let head = self.table.head;
        let tree = tree::of(key);
        let finger = &mut self.fingers[tree.map_or(0, |t| t as usize % FINGERS)];
        if finger.tree != tree {
            finger.tree = tree;
            finger.way = Way::new(head);
        }
        let way = &mut finger.way;
        let near = way.nearest();
        let is_behind = near == head || near.is_before(key, seq);
        let successor = if is_behind { way.advance(key, seq, height) } else { way.search(head, key, seq) };
        node.set_prev(way.nearest());
        for (level, prev) in way.levels().take(height) {
            node.set_next(level, prev.next(level));
            prev.set_next(level, Some(node));
            *prev = node;
        }
        if let Some(successor) = successor {
            successor.set_prev(node);
        }
        let table = &*self.table;
        table.bytes.fetch_add(size, Ordering::Relaxed);
        table.entries.fetch_add(1, Ordering::Relaxed);
        table.seq_max.store(seq, Ordering::Release);
        MemEntry { node, table }
    }

    pub(crate) fn drop_tree(&mut self, tree: u64, seq: u64) {
        lock(&self.table.drops).push((tree, seq));
        self.table.seq_max.store(seq, Ordering::Release);
    }

    /// One more level with probability 1/4 each.
    fn height(&mut self) -> usize {
        let zeros = (self.rng.next_u64() | 1 << 62).trailing_zeros() as usize;
        (1 + zeros / 2).min(HEIGHT_MAX)
    }

    fn allocate(&mut self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGN);
        if bytes > self.room_bytes {
            let pool = &self.table.pool;
            let chunk = pool.take(bytes);
            let (start, chunk_bytes) = (chunk.start(), chunk.bytes());
            self.push_chunk(chunk);
            if bytes * 4 > self.table.pool.chunk_bytes() {
                // A large document gets its own chunk; the rest of the current one stays in use.
                return start;
            }
            self.room = start;
            self.room_bytes = chunk_bytes;
        }
        let at = self.room;
        // SAFETY: `bytes` fit into the room that is left of the chunk.
        self.room = unsafe { at.add(bytes) };
        self.room_bytes -= bytes;
        at
    }

    fn push_chunk(&mut self, chunk: Chunk) {
        lock(&self.table.chunks).push(chunk);
    }
}
