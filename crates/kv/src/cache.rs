//! The block cache: decoded blocks, bounded in bytes, in shards with a clock each.
//!
//! A block that a scan brought in starts with no credit and is the first to go, so one long
//! scan does not push out what point reads use.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::run::Block;
use crate::sync::lock;

const SHARDS: usize = 16;
const CREDIT_MAX: u8 = 3;

/// Which block: run id and number within the run.
type Key = (u64, u32);

/// Keys are already spread by multiplication in `mix`; no need for a keyed hash here, since
/// run ids and block numbers are not chosen by clients.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = mix(self.0 ^ n);
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
}

fn mix(n: u64) -> u64 {
    let wide = u128::from(n ^ 0x9e37_79b9_7f4a_7c15) * 0xa076_1d64_78bd_642f;
    (wide as u64) ^ ((wide >> 64) as u64)
}

struct Slot {
    key: Key,
    block: Arc<Block>,
    credit: u8,
}

#[derive(Default)]
struct Shard {
    map: HashMap<Key, usize, BuildHasherDefault<KeyHasher>>,
    slots: Vec<Slot>,
    hand: usize,
    bytes: usize,
}

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

    fn shard(&self, key: Key) -> &Mutex<Shard> {
        &self.shards[(mix(key.0.rotate_left(32) ^ u64::from(key.1)) >> 60) as usize]
    }

    pub(crate) fn get(&self, run: u64, block: u32, usage: Use) -> Option<Arc<Block>> {
        let key = (run, block);
        let mut shard = lock(self.shard(key));
        let Some(&at) = shard.map.get(&key) else {
            if usage != Use::Once {
                self.misses.fetch_add(1, Ordering::Relaxed);
            }
            return None;
        };
        let slot = &mut shard.slots[at];
        if usage == Use::Get {
            slot.credit = (slot.credit + 1).min(CREDIT_MAX);
        }
        let block = slot.block.clone();
        drop(shard);
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(block)
    }

    pub(crate) fn insert(&self, run: u64, number: u32, block: &Arc<Block>, usage: Use) {
        let bytes = block.bytes();
        if usage == Use::Once || bytes > self.shard_bytes / 2 {
            return;
        }
        let key = (run, number);
        let mut shard = lock(self.shard(key));
        if shard.map.contains_key(&key) {
            return;
        }
        let before = shard.bytes;
        let mut evicted = Vec::new();
        while shard.bytes + bytes > self.shard_bytes && !shard.slots.is_empty() {
            evicted.push(shard.evict());
        }
        let at = shard.slots.len();
        shard.slots.push(Slot { key, block: block.clone(), credit: u8::from(usage == Use::Get) });
        shard.map.insert(key, at);
        shard.bytes += bytes;
        let after = shard.bytes;
        drop(shard);
        self.bytes.fetch_add(after, Ordering::Relaxed);
        self.bytes.fetch_sub(before, Ordering::Relaxed);
    }

    /// Forgets the blocks of a run that no longer exists.
    pub(crate) fn forget(&self, run: u64, blocks: usize) {
        for number in 0..u32::try_from(blocks).unwrap_or(u32::MAX) {
            let key = (run, number);
            let mut shard = lock(self.shard(key));
            if let Some(&at) = shard.map.get(&key) {
                let slot = shard.remove(at);
                drop(shard);
                self.bytes.fetch_sub(slot.block.bytes(), Ordering::Relaxed);
            }
        }
    }
}

impl Shard {
    /// Takes out the next block without credit, taking credit from those passed.
    fn evict(&mut self) -> Slot {
        loop {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let slot = &mut self.slots[self.hand];
            if slot.credit == 0 {
                return self.remove(self.hand);
            }
            slot.credit -= 1;
            self.hand += 1;
        }
    }

    fn remove(&mut self, at: usize) -> Slot {
        let slot = self.slots.swap_remove(at);
        self.map.remove(&slot.key);
        if let Some(moved) = self.slots.get(at) {
            self.map.insert(moved.key, at);
        }
        self.bytes -= slot.block.bytes();
        slot
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
        for n in 0..500 {
            cache.insert(1, n, &test_block(500), Use::Get);
            assert!(cache.bytes() <= SHARDS * 4000);
        }
        let held: usize = cache.shards.iter().map(|s| lock(s).bytes).sum();
        assert_eq!(held, cache.bytes());
        assert!(held > SHARDS * 2000, "used, not just emptied: {held}");
        cache.forget(1, 500);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn a_scan_does_not_push_out_what_reads_use() {
        let cache = Cache::new(SHARDS * 20_000);
        for n in 0..100 {
            cache.insert(1, n, &test_block(500), Use::Get);
            cache.get(1, n, Use::Get).unwrap();
        }
        for n in 0..2000 {
            cache.insert(2, n, &test_block(500), Use::Scan);
        }
        let kept = (0..100).filter(|&n| cache.get(1, n, Use::Get).is_some()).count();
        assert!(kept >= 90, "{kept}");
    }

    #[test]
    fn a_giant_block_is_not_kept() {
        let cache = Cache::new(SHARDS * 1000);
        cache.insert(1, 0, &test_block(900), Use::Get);
        assert!(cache.get(1, 0, Use::Get).is_none());
    }
}
