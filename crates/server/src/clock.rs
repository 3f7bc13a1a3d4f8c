//! The server's clocks: wall time, and the hybrid clock whose ticks order writes for drivers (`operationTime`,
//! `$clusterTime`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Seconds in the high half, an increment in the low half, as in a BSON timestamp. Never goes back, whatever the wall
/// clock does.
pub struct Clock {
    last: AtomicU64,
    started: Instant,
    started_ms: i64,
}

impl Clock {
    pub fn new() -> Clock {
        let started_ms = now_ms();
        Clock { last: AtomicU64::new(first_of(started_ms)), started: Instant::now(), started_ms }
    }

    /// The time of the latest write.
    pub fn time(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// A new time, later than all before: one for every write.
    pub fn tick(&self) -> u64 {
        let wall = first_of(now_ms());
        let later = |last: u64| Some(wall.max(last + 1));
        match self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, later) {
            Ok(last) | Err(last) => wall.max(last + 1),
        }
    }

    /// Something was written at that time.
    pub fn advance(&self, time: u64) {
        self.last.fetch_max(time, Ordering::AcqRel);
    }

    pub fn uptime_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    pub fn started_ms(&self) -> i64 {
        self.started_ms
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

fn first_of(ms: i64) -> u64 {
    let seconds = u64::try_from(ms / 1000).unwrap_or(0) & u64::from(u32::MAX);
    seconds << 32 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_only_go_forward() {
        let clock = Clock::new();
        let mut last = clock.time();
        for _ in 0..1000 {
            let next = clock.tick();
            assert!(next > last);
            assert_eq!(clock.time(), next);
            last = next;
        }
        assert!((last >> 32) as i64 - now_ms() / 1000 <= 1);
    }
}
