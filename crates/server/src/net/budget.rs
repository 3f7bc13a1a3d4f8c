//! The budgets for large requests and large replies: a request gets its share before it is received, and gives it back
//! once answered; a reply that turns out to be large gets the most that one may need, and what it needs once it is written.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use espalier_value::{Code, Error, Result};

pub struct Budget {
    max: u64,
    used: Mutex<u64>,
    freed: Condvar,
}

/// Bytes that a request may use; given back when dropped.
pub struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    pub fn new(max: u64) -> Arc<Budget> {
        Arc::new(Budget { max, used: Mutex::new(0), freed: Condvar::new() })
    }

    /// Bytes that are in use.
    pub fn used(&self) -> u64 {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a share. `None` if it is not free in time. A request larger than the whole budget runs alone.
    pub fn acquire(self: &Arc<Self>, bytes: u64, patience: Duration) -> Option<Share> {
        let bytes = bytes.min(self.max);
        let until = Instant::now() + patience;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        while *used + bytes > self.max {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            used = self.freed.wait_timeout(used, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *used += bytes;
        Some(Share { budget: Arc::clone(self), bytes })
    }
}

/// A reply that is being written, and its share once it is large.
pub struct Room<'b> {
    budget: &'b Arc<Budget>,
    share: Option<Share>,
}

/// A smaller reply needs no share.
const SMALL_REPLY_BYTES: usize = 64 * 1024;
/// What a reply may come to: a batch, one more document, and the fields around them.
const REPLY_BYTES_MAX: u64 = 33 * 1024 * 1024;
/// How long a reply waits for others to be sent.
const PATIENCE: Duration = Duration::from_secs(30);

impl<'b> Room<'b> {
    pub fn new(budget: &'b Arc<Budget>) -> Room<'b> {
        Room { budget, share: None }
    }

    /// Makes sure that a reply of this length may be written. One share for all that may come: a reply that waits has
    /// none yet, so replies cannot wait for each other.
    #[inline]
    pub fn need(&mut self, bytes: usize) -> Result<()> {
        if bytes <= SMALL_REPLY_BYTES || self.share.is_some() {
            return Ok(());
        }
        self.take()
    }

    #[cold]
    fn take(&mut self) -> Result<()> {
        self.share = self.budget.acquire(REPLY_BYTES_MAX, PATIENCE);
        if self.share.is_some() {
            return Ok(());
        }
        let message = format!(
            "too many large replies at once: together they may have {} bytes (--max-in-flight-reply-bytes)",
            self.budget.max
        );
        Err(Error::new(Code::TemporarilyUnavailable, message))
    }

    /// Gives back what the reply did not need.
    pub fn shrink(self, bytes: usize) -> Option<Share> {
        let mut share = self.share?;
        share.shrink(bytes as u64);
        Some(share)
    }
}

impl Share {
    fn shrink(&mut self, bytes: u64) {
        let surplus = self.bytes.saturating_sub(bytes);
        *self.budget.used.lock().unwrap_or_else(PoisonError::into_inner) -= surplus;
        self.bytes -= surplus;
        self.budget.freed.notify_all();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        *self.budget.used.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_large_reply_takes_room_and_keeps_what_it_needs() {
        let budget = Budget::new(40 << 20);
        let mut room = Room::new(&budget);
        room.need(SMALL_REPLY_BYTES).unwrap();
        assert_eq!(budget.used(), 0);
        room.need(SMALL_REPLY_BYTES + 1).unwrap();
        room.need(1 << 20).unwrap();
        assert_eq!(budget.used(), REPLY_BYTES_MAX);
        let share = room.shrink(1 << 20);
        assert_eq!(budget.used(), 1 << 20);
        drop(share);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn shares_wait_for_each_other() {
        let budget = Budget::new(100);
        let first = budget.acquire(60, Duration::ZERO).unwrap();
        assert!(budget.acquire(50, Duration::from_millis(5)).is_none());
        assert!(budget.acquire(40, Duration::ZERO).is_some());
        drop(first);
        // More than there is: waits for all of it and no longer.
        let all = budget.acquire(1000, Duration::ZERO).unwrap();
        assert!(budget.acquire(1, Duration::ZERO).is_none());
        drop(all);
        assert!(budget.acquire(100, Duration::ZERO).is_some());
    }
}
