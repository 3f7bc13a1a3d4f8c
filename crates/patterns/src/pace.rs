//! How hard work in the background may work: as hard as it can while nobody else is there, and little of the time while
//! clients are.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After this much work it looks whether clients are there.
const WORK: Duration = Duration::from_millis(1);
/// While they are it rests this many times as long as it worked. Work and rest are short, so that nobody waits long for a
/// processor, and seven eighths of one are left where there is only one.
const REST: u32 = 7;
/// It never rests longer: what took long was waiting, as a rule, and kept no processor from anybody.
const REST_MOST: Duration = Duration::from_millis(200);
/// One transaction is to take about this long: what it has claimed is kept from others for so long.
const TOGETHER_TIME: Duration = Duration::from_millis(2);

/// Whether clients are there.
#[derive(Default)]
pub struct Pace {
    // Written only when it changes: whoever reads it shares it with all others.
    clients: AtomicBool,
}

impl Pace {
    /// A client's command begins.
    pub fn note_client(&self) {
        if !self.clients.load(Ordering::Relaxed) {
            self.clients.store(true, Ordering::Relaxed);
        }
    }

    /// Whether one began since this was last asked.
    fn take_clients(&self) -> bool {
        self.clients.load(Ordering::Relaxed) && self.clients.swap(false, Ordering::Relaxed)
    }
}

/// A stretch of work.
pub struct Slice {
    since: Instant,
}

impl Slice {
    pub fn begin() -> Slice {
        Slice { since: Instant::now() }
    }

    /// Called after each small piece of work.
    pub fn give_way(&mut self, pace: &Pace) {
        let worked = self.since.elapsed();
        if worked < WORK {
            return;
        }
        if pace.take_clients() {
            std::thread::sleep((worked * REST).min(REST_MOST));
        }
        self.since = Instant::now();
    }
}

/// How many documents one transaction is to have.
pub struct Together {
    now: usize,
    limits: RangeInclusive<usize>,
}

impl Together {
    pub fn new(limits: RangeInclusive<usize>) -> Together {
        Together { now: *limits.start(), limits }
    }

    pub fn now(&self) -> usize {
        self.now
    }

    /// One with so many took so long.
    pub fn took(&mut self, took: Duration) {
        if took < TOGETHER_TIME / 2 {
            self.now = (self.now * 2).min(*self.limits.end());
        } else if took > TOGETHER_TIME {
            self.fewer();
        }
    }

    /// Somebody was in the way of one with so many.
    pub fn fewer(&mut self) {
        self.now = (self.now / 2).max(*self.limits.start());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_rests_only_while_clients_are_there() {
        let pace = Pace::default();
        let took = |pace: &Pace| {
            let mut slice = Slice::begin();
            std::thread::sleep(WORK);
            let before = Instant::now();
            slice.give_way(pace);
            before.elapsed()
        };
        pace.note_client();
        assert!(took(&pace) >= WORK * REST);
        assert!(!pace.take_clients());
    }

    #[test]
    fn a_rest_has_an_end_after_work_that_took_long() {
        let pace = Pace::default();
        pace.note_client();
        let mut slice = Slice { since: Instant::now() - Duration::from_secs(60) };
        let before = Instant::now();
        slice.give_way(&pace);
        let rested = before.elapsed();
        assert!(rested >= REST_MOST && rested < Duration::from_secs(30), "{rested:?}");
    }

    #[test]
    fn transactions_grow_while_they_are_quick_and_shrink_when_they_are_not() {
        let quick = Duration::from_micros(300);
        let mut together = Together::new(32..=100);
        let mut after = |took| {
            together.took(took);
            together.now()
        };
        assert_eq!([after(quick), after(quick), after(TOGETHER_TIME), after(TOGETHER_TIME * 2)], [64, 100, 100, 50]);
        together.fewer();
        assert_eq!(together.now(), 32);
    }
}
