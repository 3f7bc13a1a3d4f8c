//! The budget for large requests: a request gets its share before it is received, and gives it back once answered.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) struct Budget {
    max: u64,
    used: Mutex<u64>,
    freed: Condvar,
}

/// Bytes that a request may use; given back when dropped.
pub(crate) struct Share<'b> {
    budget: &'b Budget,
    bytes: u64,
}

impl Budget {
    pub fn new(max: u64) -> Budget {
        Budget { max, used: Mutex::new(0), freed: Condvar::new() }
    }

    /// Waits for a share. `None` if it is not free in time. A request larger than the whole budget runs alone.
    pub fn acquire(&self, bytes: u64, patience: Duration) -> Option<Share<'_>> {
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
        Some(Share { budget: self, bytes })
    }
}

impl Drop for Share<'_> {
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
