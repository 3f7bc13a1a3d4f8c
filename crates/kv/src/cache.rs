//! The block cache: decoded blocks, bounded in bytes.
//!
//! A cached block hangs in a slot of its own run, so that finding it takes no hash table and no
//! lock that others want; the cache itself only knows in which order to take blocks out. Blocks
//! that point reads brought in go round a clock. Blocks that scans brought in wait in a queue
//! that is emptied first once it is over its share, so that one long scan does not push out what
//! point reads use; a block there that a point read asks for moves to the clock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::run::Block;
use crate::sync::lock;

const SHARDS: usize = 16;
const CREDIT_MAX: u8 = 3;
/// One in this many bytes of a full cache is left to scans.
const SCAN_SHARE: usize = 4;

/// Who asks for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A point read: worth keeping.
    Get,
    /// A scan: worth keeping only while there is room.
    Scan,
    /// A compaction or check: reads everything once, leaves no trace.
    Once,
}

/// The cached blocks of one run, by number.
pub(crate) struct Slots {
    slots: Box<[Mutex<Slot>]>,
}

#[derive(Default)]
struct Slot {
    block: Option<Arc<Block>>,
    credit: u8,
}

impl Slots {
    pub(crate) fn new(blocks: usize) -> Arc<Slots> {
        Arc::new(Slots { slots: (0..blocks).map(|_| Mutex::default()).collect() })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Mutex<Slot>>()
    }
}

/// A block that is cached.
struct Held {
    slots: Arc<Slots>,
    number: usize,
}

impl Held {
    fn take(&self) -> Option<Arc<Block>> {
        lock(&self.slots.slots[self.number]).block.take()
    }
}

/// Blocks in the order in which they are considered.
#[derive(Default)]
struct Queue {
    held: VecDeque<Held>,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, held: Held, bytes: usize) {
        self.held.push_back(held);
        self.bytes += bytes;
    }

    /// Takes out the blocks of a run.
    fn forget(&mut self, slots: &Arc<Slots>) -> usize {
        let before = self.bytes;
        let bytes = &mut self.bytes;
        self.held.retain(|held| {
            let stays = !Arc::ptr_eq(&held.slots, slots);
            if !stays && let Some(block) = held.take() {
                *bytes -= block.bytes();
            }
            stays
        });
        before - self.bytes
    }
}

#[derive(Default)]
struct Shard {
    clock: Queue,
    scanned: Queue,
}

impl Shard {
    fn bytes(&self) -> usize {
        self.clock.bytes + self.scanned.bytes
    }

    /// Takes out the next block without credit; `false` if there is none at all.
    fn evict(&mut self, bytes_max: usize) -> bool {
        while self.bytes() > 0 {
            let from_scanned = self.scanned.bytes > bytes_max / SCAN_SHARE || self.clock.bytes == 0;
            let queue = if from_scanned { &mut self.scanned } else { &mut self.clock };
            let Some(held) = queue.held.pop_front() else { return false };
            let mut slot = lock(&held.slots.slots[held.number]);
            let bytes = slot.block.as_ref().map_or(0, |block| block.bytes());
            queue.bytes -= bytes;
            if slot.credit == 0 {
                let block = slot.block.take();
                drop(slot);
                drop(block);
                return true;
            }
            slot.credit -= 1;
            drop(slot);
            self.clock.push(held, bytes);
        }
        false
    }
}

pub(crate) struct Cache {
    shards: [Mutex<Shard>; SHARDS],
    shard_bytes: usize,
    bytes: AtomicUsize,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Cache {
    pub(crate) fn new(bytes: usize) -> Cache {
        Cache {
            shards: std::array::from_fn(|_| Mutex::default()),
            shard_bytes: bytes / SHARDS,
            bytes: AtomicUsize::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    pub(crate) fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn get(&self, slots: &Slots, number: usize, usage: Use) -> Option<Arc<Block>> {
        let mut slot = lock(&slots.slots[number]);
        let Some(block) = slot.block.clone() else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        if usage == Use::Get {
            slot.credit = (slot.credit + 1).min(CREDIT_MAX);
        }
        drop(slot);
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(block)
    }

    pub(crate) fn insert(&self, slots: &Arc<Slots>, number: usize, block: &Arc<Block>, usage: Use) {
        let bytes = block.bytes();
        if usage == Use::Once || bytes > self.shard_bytes / 2 {
            return;
        }
        {
            let mut slot = lock(&slots.slots[number]);
            if slot.block.is_some() {
                return;
            }
            slot.block = Some(block.clone());
            slot.credit = u8::from(usage == Use::Get);
        }
        let held = Held { slots: slots.clone(), number };
        // Neighbouring blocks go to different shards, and runs start at different ones.
        let shard = (number + Arc::as_ptr(slots).addr() / size_of::<Slots>()) % SHARDS;
        let mut shard = lock(&self.shards[shard]);
        let before = shard.bytes();
        match usage {
            Use::Get => shard.clock.push(held, bytes),
            Use::Scan | Use::Once => shard.scanned.push(held, bytes),
        }
        while shard.bytes() > self.shard_bytes && shard.evict(self.shard_bytes) {}
        let after = shard.bytes();
        drop(shard);
        self.bytes.fetch_add(after, Ordering::Relaxed);
        self.bytes.fetch_sub(before, Ordering::Relaxed);
    }

    /// Forgets the blocks of a run that no longer exists.
    pub(crate) fn forget(&self, slots: &Arc<Slots>) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let freed = shard.clock.forget(slots) + shard.scanned.forget(slots);
            drop(shard);
            self.bytes.fetch_sub(freed, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::run::test_block;

    #[test]
    fn the_bound_holds_and_counts_agree() {
        let cache = Cache::new(SHARDS * 4000);
        let slots = Slots::new(500);
        for n in 0..500 {
            let usage = if n % 3 == 0 { Use::Scan } else { Use::Get };
            cache.insert(&slots, n, &test_block(500), usage);
            assert!(cache.bytes() <= SHARDS * 4000);
        }
        let queued: usize = cache.shards.iter().map(|shard| lock(shard).bytes()).sum();
        let blocks = slots.slots.iter().filter_map(|slot| lock(slot).block.clone());
        let held: usize = blocks.map(|block| block.bytes()).sum();
        assert_eq!((queued, held), (cache.bytes(), cache.bytes()));
        assert!(held > SHARDS * 2000, "used, not just emptied: {held}");
        cache.forget(&slots);
        assert_eq!(cache.bytes(), 0);
        assert!(slots.slots.iter().all(|slot| lock(slot).block.is_none()));
    }

    #[test]
    fn a_scan_does_not_push_out_what_reads_use() {
        let cache = Cache::new(SHARDS * 20_000);
        let (read, scanned) = (Slots::new(100), Slots::new(5000));
        for n in 0..100 {
            cache.insert(&read, n, &test_block(500), Use::Get);
        }
        for n in 0..5000 {
            cache.insert(&scanned, n, &test_block(500), Use::Scan);
        }
        let kept = (0..100).filter(|&n| cache.get(&read, n, Use::Get).is_some()).count();
        assert!(kept >= 90, "{kept}");
        let left = (0..5000).filter(|&n| cache.get(&scanned, n, Use::Scan).is_some()).count();
        assert!(left > 100, "a scan may use what nobody else wants: {left}");
    }

    #[test]
    fn a_scanned_block_that_is_read_stays() {
        let cache = Cache::new(SHARDS * 20_000);
        let slots = Slots::new(5000);
        for n in 0..5000 {
            cache.insert(&slots, n, &test_block(500), Use::Scan);
            if n % 500 == 0 {
                assert!(cache.get(&slots, n, Use::Get).is_some());
            }
        }
        let kept = (0..5000).step_by(500).filter(|&n| cache.get(&slots, n, Use::Get).is_some());
        assert!(kept.count() >= 9);
    }

    #[test]
    fn a_giant_block_is_not_kept() {
        let cache = Cache::new(SHARDS * 1000);
        let slots = Slots::new(1);
        cache.insert(&slots, 0, &test_block(900), Use::Get);
        assert!(cache.get(&slots, 0, Use::Get).is_none());
    }
}
