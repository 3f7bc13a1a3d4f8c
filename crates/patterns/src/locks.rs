//! Writers of one logical document take turns instead of conflicting and starting over, in the order in which they came. A
//! courtesy: correctness rests on the store's conflict check.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// The documents whose turn somebody has, with those who wait for it.
type Held = HashMap<Vec<u8>, VecDeque<Arc<Waiter>>>;

#[derive(Default)]
struct Shard {
    held: Mutex<Held>,
}

/// One who waits. The turn is handed over: who comes later cannot take it, and nobody wakes who would have to wait on.
#[derive(Default)]
struct Waiter {
    is_next: Mutex<bool>,
    handed: Condvar,
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
        let mut key = ns.to_string().into_bytes();
        key.push(0);
        key.extend_from_slice(&key::of(id));
        let hash = key.iter().fold(0xCBF2_9CE4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01B3));
        let shard = &self.shards[(hash >> 32) as usize % SHARDS];
        let waiter = {
            let mut held = guard(&shard.held);
            match held.get_mut(&key) {
                None => {
                    held.insert(key.clone(), VecDeque::new());
                    return Ok(Some(Lock { shard, key }));
                }
                Some(waiting) => {
                    let waiter = Arc::new(Waiter::default());
                    waiting.push_back(Arc::clone(&waiter));
                    waiter
                }
            }
        };
        let mut queued = Queued { shard, key, waiter: Some(waiter) };
        let since = Instant::now();
        while !queued.wait(LOOK_EVERY.min(most.saturating_sub(since.elapsed()))) {
            context.interrupt.check()?;
            if since.elapsed() >= most {
                // It may have been handed over just now.
                return Ok(queued.leave());
            }
        }
        Ok(queued.leave())
    }
}

/// A place in the queue, which is left in any case.
struct Queued<'l> {
    shard: &'l Shard,
    key: Vec<u8>,
    waiter: Option<Arc<Waiter>>,
}

impl<'l> Queued<'l> {
    /// Whether it is one's turn, after waiting for it for a while.
    fn wait(&self, most: Duration) -> bool {
        let Some(waiter) = &self.waiter else { return false };
        let is_next = guard(&waiter.is_next);
        let wait = waiter.handed.wait_timeout_while(is_next, most, |is_next| !*is_next);
        *wait.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The lock, if it was handed over.
    fn leave(&mut self) -> Option<Lock<'l>> {
        let waiter = self.waiter.take()?;
        let mut held = guard(&self.shard.held);
        // Handing over happens under the same guard.
        if *guard(&waiter.is_next) {
            drop(held);
            return Some(Lock { shard: self.shard, key: std::mem::take(&mut self.key) });
        }
        if let Some(waiting) = held.get_mut(&self.key) {
            waiting.retain(|other| !Arc::ptr_eq(other, &waiter));
        }
        None
    }
}

/// Also when the wait was interrupted: a turn that was handed over goes on to the next.
impl Drop for Queued<'_> {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

/// A panic while something was locked leaves it whole.
fn guard<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let mut held = guard(&self.shard.held);
        match held.get_mut(&self.key).and_then(VecDeque::pop_front) {
            Some(next) => {
                *guard(&next.is_next) = true;
                next.handed.notify_one();
            }
            None => drop(held.remove(&self.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn ns() -> Namespace {
        Namespace::new("db", "c")
    }

    #[test]
    fn turns_are_taken_in_order_and_one_at_a_time() {
        let (locks, context) = (Locks::new(), Context::default());
        let order = Mutex::new(Vec::new());
        let inside = AtomicUsize::new(0);
        let first = locks.lock(&ns(), ValueRef::Int32(1), &context).unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (locks, order, inside) = (&locks, &order, &inside);
                scope.spawn(move || {
                    let _lock = locks.lock(&ns(), ValueRef::Int32(1), &Context::default()).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    order.lock().unwrap().push(number);
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
                // Until it waits.
                while locks
                    .shards
                    .iter()
                    .map(|s| guard(&s.held).values().map(VecDeque::len).sum::<usize>())
                    .sum::<usize>()
                    <= number
                {
                    std::thread::yield_now();
                }
            }
            // Another document is free.
            drop(locks.lock(&ns(), ValueRef::Int32(2), &context).unwrap());
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
        assert!(locks.shards.iter().all(|shard| guard(&shard.held).is_empty()));
    }

    #[test]
    fn who_stops_waiting_is_not_handed_the_turn() {
        let (locks, context) = (Locks::new(), Context::default());
        let held = locks.lock(&ns(), ValueRef::Int32(1), &context).unwrap();
        let brief = Duration::from_millis(5);
        assert!(locks.lock_within(&ns(), ValueRef::Int32(1), &context, brief).unwrap().is_none());
        let interrupted = Context::default();
        interrupted.interrupt.raise(espalier_value::Code::Interrupted);
        assert!(locks.lock(&ns(), ValueRef::Int32(1), &interrupted).is_err());
        drop(held);
        assert!(locks.lock_within(&ns(), ValueRef::Int32(1), &context, brief).unwrap().is_some());
        assert!(locks.shards.iter().all(|shard| guard(&shard.held).is_empty()));
    }
}
