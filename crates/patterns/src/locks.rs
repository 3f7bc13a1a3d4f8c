//! Writers of one logical document take turns instead of conflicting and starting over. A courtesy: correctness rests on
//! the store's conflict check.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use espalier_query::Context;
use espalier_store::Namespace;
use espalier_value::{Result, ValueRef, key};

const SHARDS: usize = 64;
/// How often one who waits looks whether it has been interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub struct Locks {
    shards: Box<[Shard]>,
}

#[derive(Default)]
struct Shard {
    held: Mutex<HashSet<Vec<u8>>>,
    released: Condvar,
}

/// Held until dropped.
pub struct Lock<'l> {
    shard: &'l Shard,
    key: Vec<u8>,
}

impl Locks {
    pub fn new() -> Locks {
        Locks { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    /// Waits until nobody else writes the document.
    pub fn lock(&self, ns: &Namespace, id: ValueRef<'_>, context: &Context) -> Result<Lock<'_>> {
        loop {
            if let Some(lock) = self.lock_within(ns, id, context, Duration::from_secs(3_600))? {
                return Ok(lock);
            }
        }
    }

    /// The same for a time; `None` if it was not enough.
    pub fn lock_within(
        &self,
        ns: &Namespace,
        id: ValueRef<'_>,
        context: &Context,
        most: Duration,
    ) -> Result<Option<Lock<'_>>> {
        let mut bytes = ns.to_string().into_bytes();
        bytes.push(0);
        bytes.extend_from_slice(&key::of(id));
        let hash =
            bytes.iter().fold(0xCBF2_9CE4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01B3));
        let shard = &self.shards[(hash >> 32) as usize % SHARDS];
        let mut held = guard(shard);
        let mut since = None;
        while held.contains(&bytes) {
            context.interrupt.check()?;
            if since.get_or_insert_with(Instant::now).elapsed() >= most {
                return Ok(None);
            }
            held = shard.released.wait_timeout(held, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
        held.insert(bytes.clone());
        Ok(Some(Lock { shard, key: bytes }))
    }
}

/// A panic while a shard was locked leaves a set that is still whole.
fn guard(shard: &Shard) -> MutexGuard<'_, HashSet<Vec<u8>>> {
    shard.held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        guard(self.shard).remove(&self.key);
        self.shard.released.notify_all();
    }
}
