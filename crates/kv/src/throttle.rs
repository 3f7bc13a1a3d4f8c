//! Slowing writers down before the background falls behind: early and gently, so that there
//! is never a stall of seconds.
//!
//! The state of the background gives a rate (bytes per second); commits take turns on a common
//! schedule at that rate, and sleep, outside every lock, when they are ahead of it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::sync::lock;

/// Full memtables waiting at which commits start to be paced by the speed of flushing.
const FROZEN_SOFT: usize = 2;
/// Overlapping level-0 runs at which commits start to be paced.
const DEPTH_SOFT: usize = 12;
const DEPTH_RATE: u64 = 64 << 20;
const RATE_MIN: u64 = 1 << 20;
/// Shorter sleeps cost more in wake-ups than they save.
const SLEEP_MIN: Duration = Duration::from_micros(500);
const SLEEP_MAX: Duration = Duration::from_millis(50);

pub(crate) struct Throttle {
    frozen: AtomicUsize,
    depth: AtomicUsize,
    /// Measured speed of flushing, bytes of memtable per second.
    flush_rate: AtomicU64,
    /// When the next commit may go.
    schedule: Mutex<Instant>,
    slept_micros: AtomicU64,
}

impl Throttle {
    pub(crate) fn new() -> Throttle {
        Throttle {
            frozen: AtomicUsize::new(0),
            depth: AtomicUsize::new(0),
            flush_rate: AtomicU64::new(100 << 20),
            schedule: Mutex::new(Instant::now()),
            slept_micros: AtomicU64::new(0),
        }
    }

    pub(crate) fn set_frozen(&self, tables: usize) {
        self.frozen.store(tables, Ordering::Relaxed);
    }

    pub(crate) fn set_depth(&self, depth: usize) {
        self.depth.store(depth, Ordering::Relaxed);
    }

    pub(crate) fn slept_micros(&self) -> u64 {
        self.slept_micros.load(Ordering::Relaxed)
    }

    /// A flush of `bytes` took this long.
    pub(crate) fn flushed(&self, bytes: usize, took: Duration) {
        let rate = (bytes as f64 / took.as_secs_f64().max(1e-3)) as u64;
        let old = self.flush_rate.load(Ordering::Relaxed);
        let smoothed = (old * 3 + rate.clamp(RATE_MIN, 4 << 30)) / 4;
        self.flush_rate.store(smoothed, Ordering::Relaxed);
    }

    /// Bytes per second that commits may write now; `None` for as fast as they can.
    fn rate(&self) -> Option<u64> {
        let frozen = self.frozen.load(Ordering::Relaxed);
        let depth = self.depth.load(Ordering::Relaxed);
        let by_frozen = (frozen >= FROZEN_SOFT).then(|| {
            let flush = self.flush_rate.load(Ordering::Relaxed);
            // One and a half times the speed of flushing at first, a fraction of it later.
            match frozen - FROZEN_SOFT {
                0 => flush * 3 / 2,
                1 => flush,
                2 => flush * 3 / 4,
                3 => flush / 2,
                over => flush / (over as u64 * over as u64),
            }
        });
        let by_depth = (depth >= DEPTH_SOFT).then(|| {
            let over = (depth - DEPTH_SOFT) as u32 / 4;
            DEPTH_RATE.checked_shr(over).unwrap_or(0)
        });
        let rate = match (by_frozen, by_depth) {
            (None, None) => return None,
            (Some(rate), None) | (None, Some(rate)) => rate,
            (Some(a), Some(b)) => a.min(b),
        };
        Some(rate.max(RATE_MIN))
    }

    /// Waits for this commit's turn.
    pub(crate) fn pace(&self, bytes: usize) {
        let Some(rate) = self.rate() else { return };
        let cost = Duration::from_nanos((bytes as u64).saturating_mul(1_000_000_000) / rate);
        let now = Instant::now();
        let turn = {
            let mut next = lock(&self.schedule);
            let turn = (*next).max(now);
            *next = turn + cost;
            turn
        };
        let ahead = turn.saturating_duration_since(now);
        if ahead >= SLEEP_MIN {
            let sleep = ahead.min(SLEEP_MAX);
            let micros = u64::try_from(sleep.as_micros()).unwrap_or(u64::MAX);
            self.slept_micros.fetch_add(micros, Ordering::Relaxed);
            std::thread::sleep(sleep);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_pressure_no_limit() {
        let throttle = Throttle::new();
        throttle.set_frozen(1);
        throttle.set_depth(DEPTH_SOFT - 1);
        assert_eq!(throttle.rate(), None);
    }

    #[test]
    fn more_pressure_is_slower_down_to_the_minimum() {
        let throttle = Throttle::new();
        let mut last = u64::MAX;
        for frozen in FROZEN_SOFT..FROZEN_SOFT + 12 {
            throttle.set_frozen(frozen);
            let rate = throttle.rate().unwrap();
            assert!(rate <= last && rate >= RATE_MIN);
            last = rate;
        }
        throttle.set_frozen(0);
        throttle.set_depth(1000);
        assert_eq!(throttle.rate(), Some(RATE_MIN));
    }

    #[test]
    fn commits_are_paced_to_the_rate() {
        let throttle = Throttle::new();
        throttle.set_depth(DEPTH_SOFT);
        let start = Instant::now();
        for _ in 0..40 {
            throttle.pace(DEPTH_RATE as usize / 1000);
        }
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(30), "{took:?}");
    }
}
