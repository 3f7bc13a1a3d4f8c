//! Memory of the memtables: large chunks that are filled, lent to readers, and taken back whole.
//!
//! Chunks go back to a pool instead of the allocator, so that whoever drops the last reference
//! to a table (often a reader) pays for moving a few pointers, not for unmapping megabytes.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Mutex;

use crate::sync::lock;

const WORD: usize = size_of::<u64>();

/// Owned, uninitialised, word-aligned memory that never moves.
pub(super) struct Chunk {
    start: NonNull<MaybeUninit<u64>>,
    words: usize,
}

// SAFETY: a chunk is plain memory with one owner; what is stored in it is governed by the
// memtable, which only hands out shared access to fully written nodes.
unsafe impl Send for Chunk {}
// SAFETY: as above; `&Chunk` gives no access to the memory.
unsafe impl Sync for Chunk {}

impl Chunk {
    pub(super) fn new(bytes: usize) -> Chunk {
        let memory = Box::<[u64]>::new_uninit_slice(bytes.div_ceil(WORD));
        let words = memory.len();
        // SAFETY: `Box::into_raw` never gives null.
        let start = unsafe { NonNull::new_unchecked(Box::into_raw(memory).cast()) };
        Chunk { start, words }
    }

    pub(super) fn bytes(&self) -> usize {
        self.words * WORD
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start.cast()
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let slice = std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.words);
        // SAFETY: pointer and length are those of the box taken apart in `new`.
        drop(unsafe { Box::from_raw(slice) });
    }
}

/// Chunks of one size, waiting to be used again or to be freed by the background.
pub(crate) struct ChunkPool {
    memtable_bytes: usize,
    chunk_bytes: usize,
    /// Chunks that one memtable takes.
    table_chunks: usize,
    free: Mutex<Vec<Chunk>>,
}

impl ChunkPool {
    pub(crate) fn new(memtable_bytes: usize) -> ChunkPool {
        let chunk_bytes = (memtable_bytes / 16).clamp(4 << 10, 1 << 20);
        ChunkPool {
            memtable_bytes,
            chunk_bytes,
            table_chunks: memtable_bytes / chunk_bytes + 1,
            free: Mutex::default(),
        }
    }

    pub(super) fn memtable_bytes(&self) -> usize {
        self.memtable_bytes
    }

    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// A chunk of at least `bytes`.
    pub(super) fn take(&self, bytes: usize) -> Chunk {
        if bytes <= self.chunk_bytes
            && let Some(chunk) = lock(&self.free).pop()
        {
            return chunk;
        }
        Chunk::new(bytes.max(self.chunk_bytes))
    }

    pub(super) fn give_back(&self, chunks: Vec<Chunk>) {
        lock(&self.free).extend(chunks);
    }

    /// Keeps what so many memtables take and frees the rest; called by the background.
    pub(crate) fn trim(&self, keep_tables: usize) {
        let keep = self.table_chunks * keep_tables;
        let excess = {
            let mut free = lock(&self.free);
            // Over-long chunks held one big document; they are not worth keeping.
            let (fit, mut excess): (Vec<_>, Vec<_>) =
                free.drain(..).partition(|chunk| chunk.bytes() <= self.chunk_bytes + WORD);
            *free = fit;
            if free.len() > keep {
                excess.extend(free.drain(keep..));
            }
            excess
        };
        drop(excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_reused_and_trimmed() {
        let pool = ChunkPool::new(64 << 10);
        let first = pool.take(10);
        let address = first.start();
        pool.give_back(vec![first]);
        assert_eq!(pool.take(10).start(), address, "reused");
        pool.give_back((0..40).map(|_| Chunk::new(pool.chunk_bytes())).collect());
        pool.give_back(vec![Chunk::new(1 << 20)]);
        pool.trim(1);
        let free = lock(&pool.free);
        assert_eq!(free.len(), pool.table_chunks);
        assert!(free.iter().all(|chunk| chunk.bytes() < 1 << 20));
    }
}
