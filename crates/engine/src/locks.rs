//! Record locks: writers of one document queue up instead of conflicting and starting over.
//!
//! A lock is only a courtesy: correctness rests on the conflict check at commit. Without it, many clients that
//! increment one document would redo their work for every commit of another.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::layout::RecordId;

/// Which documents are being written.
pub struct Locks {
    shards: Box<[Shard]>,
}

#[derive(Default)]
struct Shard {
    held: Mutex<HashSet<(u64, RecordId)>>,
    released: Condvar,
}

const SHARDS: usize = 64;

/// Held until dropped.
pub struct Lock<'l> {
    shard: &'l Shard,
    key: (u64, RecordId),
}

impl Locks {
    pub fn new() -> Locks {
        Locks { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    /// Waits until nobody else holds the record.
    pub fn lock(&self, collection: u64, record: RecordId) -> Lock<'_> {
        let key = (collection, record);
        let shard = self.shard(key);
        let mut held = guard(shard);
        while !held.insert(key) {
            held = shard.released.wait(held).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        Lock { shard, key }
    }

    fn shard(&self, (collection, record): (u64, RecordId)) -> &Shard {
        let mixed = (collection ^ record.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.shards[mixed as usize % SHARDS]
    }
}

/// A panic while a shard was locked leaves a set that is still whole.
fn guard(shard: &Shard) -> MutexGuard<'_, HashSet<(u64, RecordId)>> {
    shard.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        guard(self.shard).remove(&self.key);
        self.shard.released.notify_all();
    }
}
