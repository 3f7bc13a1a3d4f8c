//! Waking those who wait for new documents in a collection (`awaitData`), or for anything at all to happen (change
//! streams). Costs a writer one look while nobody waits.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use espalier_store::Namespace;

const SLOTS: usize = 64;

pub struct Notifier {
    waiters: AtomicUsize,
    slots: Vec<Slot>,
    /// Where change streams wait.
    streams: Slot,
    watchers: AtomicUsize,
}

#[derive(Default)]
struct Slot {
    /// Goes on with everything that happens, also while nobody waits: whoever has seen it can wait elsewhere.
    version: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Default for Notifier {
    fn default() -> Notifier {
        Notifier {
            waiters: AtomicUsize::new(0),
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            streams: Slot::default(),
            watchers: AtomicUsize::new(0),
        }
    }
}

/// Somebody who waits; from its making on, no write is missed.
pub struct Waiter<'n> {
    /// How many wait as this one does.
    count: &'n AtomicUsize,
    slot: &'n Slot,
    seen: u64,
}

impl Notifier {
    fn slot(&self, ns: &Namespace) -> &Slot {
        let mut hasher = DefaultHasher::new();
        ns.hash(&mut hasher);
        &self.slots[hasher.finish() as usize % SLOTS]
    }

    /// How many wait or are about to look.
    pub fn waiting(&self) -> usize {
        self.waiters.load(Ordering::Relaxed)
    }

    /// Call before looking for documents: what is written after this call ends the wait.
    pub fn waiter(&self, ns: &Namespace) -> Waiter<'_> {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let slot = self.slot(ns);
        let seen = slot.version.load(Ordering::SeqCst);
        Waiter { count: &self.waiters, slot, seen }
    }

    /// As [`Notifier::waiter`], for a change stream.
    pub fn watcher(&self) -> Waiter<'_> {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        let seen = self.version();
        Waiter { count: &self.watchers, slot: &self.streams, seen }
    }

    /// Where change streams stand: it goes on whenever feeds may have more to tell.
    pub fn version(&self) -> u64 {
        self.streams.version.load(Ordering::SeqCst)
    }

    /// How many change streams wait on a thread.
    pub fn watching(&self) -> usize {
        self.watchers.load(Ordering::Relaxed)
    }

    /// Call when feeds may have more to tell.
    pub fn changed(&self) {
        self.streams.version.fetch_add(1, Ordering::SeqCst);
        if self.watchers.load(Ordering::SeqCst) > 0 {
            self.streams.wake();
        }
    }

    /// Call after a write has been committed.
    pub fn written(&self, ns: &Namespace) {
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.slot(ns).step();
        }
    }

    /// Lets everyone but change streams look whether they should still wait.
    pub fn wake_tailing(&self) {
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.slots.iter().for_each(Slot::step);
        }
    }
}

impl Slot {
    fn step(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        // Whoever has looked at the version and is about to sleep has the lock.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

impl Waiter<'_> {
    /// Blocks until something may have been written, or until that time.
    pub fn wait(&mut self, until: Instant) {
        let mut held = self.slot.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while self.slot.version.load(Ordering::SeqCst) == self.seen {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            held = self.slot.changed.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.seen = self.slot.version.load(Ordering::SeqCst);
    }

    /// What it has seen; to be gone on from elsewhere.
    pub fn seen(&self) -> u64 {
        self.seen
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_write_between_looking_and_waiting_is_not_missed() {
        let notifier = Notifier::default();
        let ns = Namespace::new("a", "b");
        let mut waiter = notifier.waiter(&ns);
        notifier.written(&ns);
        let begun = Instant::now();
        waiter.wait(begun + Duration::from_secs(60));
        assert!(begun.elapsed() < Duration::from_secs(30));
        // And the same write does not end the next wait.
        let begun = Instant::now();
        waiter.wait(begun + Duration::from_millis(30));
        assert!(begun.elapsed() >= Duration::from_millis(30));
    }
}
