//! Waking those who wait for new documents in a collection (`awaitData`), or for anything at all to happen (change
//! streams). Costs a writer one look while nobody waits.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
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
    version: Mutex<u64>,
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
        let seen = *slot.version.lock().unwrap_or_else(PoisonError::into_inner);
        Waiter { count: &self.waiters, slot, seen }
    }

    /// As [`Notifier::waiter`], for a change stream.
    pub fn watcher(&self) -> Waiter<'_> {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        let seen = *self.streams.version.lock().unwrap_or_else(PoisonError::into_inner);
        Waiter { count: &self.watchers, slot: &self.streams, seen }
    }

    /// Call when feeds may have more to tell.
    pub fn changed(&self) {
        if self.watchers.load(Ordering::SeqCst) > 0 {
            self.streams.wake();
        }
    }

    /// Call after a write has been committed.
    pub fn written(&self, ns: &Namespace) {
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.slot(ns).wake();
        }
    }

    /// Lets everyone look whether they should still wait.
    pub fn wake_all(&self) {
        self.changed();
        self.wake_tailing();
    }

    /// The same for all but change streams.
    pub fn wake_tailing(&self) {
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.slots.iter().for_each(Slot::wake);
        }
    }
}

impl Slot {
    fn wake(&self) {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }
}

impl Waiter<'_> {
    /// Blocks until something may have been written, or until that time.
    pub fn wait(&mut self, until: Instant) {
        let mut version = self.slot.version.lock().unwrap_or_else(PoisonError::into_inner);
        while *version == self.seen {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            version = self.slot.changed.wait_timeout(version, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.seen = *version;
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
