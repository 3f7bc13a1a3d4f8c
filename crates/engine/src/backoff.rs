//! Trying again after a conflict, without everybody doing so at the same moment.
//!
//! Whoever conflicts lost to somebody who committed, so that all together always get on. A pause that grows, of a length
//! drawn by chance, sees to it that each one does: who has lost often is not met again by the same others.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// So many tries in a row are made at once: most conflicts are with one other writer, who is done.
const EAGER: u32 = 2;
/// The longest pause after the first one, doubled with each.
const FIRST: Duration = Duration::from_micros(100);
/// No pause is longer.
const LONGEST: Duration = Duration::from_millis(20);

/// How often one write has conflicted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    conflicts: u32,
}

impl Backoff {
    /// After a conflict: waits for a while before the next try.
    pub fn pause(&mut self) {
        self.conflicts = self.conflicts.saturating_add(1);
        let most = self.most();
        if !most.is_zero() {
            std::thread::sleep(most.mul_f64(chance()));
        }
    }

    /// The longest that the next pause may be.
    fn most(&self) -> Duration {
        match self.conflicts.checked_sub(EAGER + 1) {
            None => Duration::ZERO,
            Some(doublings) => FIRST.saturating_mul(1 << doublings.min(16)).min(LONGEST),
        }
    }
}

/// From 0 to 1; every thread has its own.
fn chance() -> f64 {
    thread_local!(static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0) | 1));
    STATE.with(|state| {
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        (x >> 11) as f64 / (1u64 << 53) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let pauses: Vec<Duration> = (1..40).map(|conflicts| Backoff { conflicts }.most()).collect();
        assert_eq!(pauses[..2], [Duration::ZERO; 2]);
        assert_eq!(pauses[2], FIRST);
        assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(pauses.last(), Some(&LONGEST));
    }

    #[test]
    fn no_two_wait_alike() {
        let drawn: Vec<f64> = (0..100).map(|_| chance()).collect();
        assert!(drawn.iter().all(|x| (0.0..1.0).contains(x)));
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]));
        let other = std::thread::spawn(chance).join();
        assert!(other.is_ok_and(|other| !drawn.contains(&other)));
    }
}
