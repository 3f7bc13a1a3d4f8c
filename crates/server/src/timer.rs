//! One thread for everything that happens at a time: the time limits of commands, and regular housekeeping.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use espalier_query::Interrupt;
use espalier_value::Code;

#[derive(Default)]
pub struct Timer {
    state: Mutex<State>,
    changed: Condvar,
    next: AtomicU64,
}

#[derive(Default)]
struct State {
    deadlines: BTreeMap<(Instant, u64), Interrupt>,
    stopped: bool,
}

/// A command's time limit; gone when dropped.
pub struct Deadline<'t> {
    timer: &'t Timer,
    key: (Instant, u64),
}

impl Timer {
    /// Raises the interrupt with `MaxTimeMSExpired` at that time.
    pub fn limit(&self, interrupt: Interrupt, at: Instant) -> Deadline<'_> {
        let key = (at, self.next.fetch_add(1, Ordering::Relaxed));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = state.deadlines.first_key_value().is_none_or(|(first, _)| key < *first);
        state.deadlines.insert(key, interrupt);
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
        Deadline { timer: self, key }
    }

    pub fn stop(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.changed.notify_all();
    }

    /// Runs until stopped; calls `housekeeping` every so often.
    pub fn run(&self, every: Duration, mut housekeeping: impl FnMut(), raised: impl Fn()) {
        let mut next = Instant::now() + every;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.stopped {
            let now = Instant::now();
            let mut any = false;
            while let Some(entry) = state.deadlines.first_entry()
                && entry.key().0 <= now
            {
                entry.remove().raise(Code::MaxTimeMSExpired);
                any = true;
            }
            if any || now >= next {
                drop(state);
                if any {
                    raised();
                }
                if now >= next {
                    housekeeping();
                    next = Instant::now() + every;
                }
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let until = state.deadlines.first_key_value().map_or(next, |((at, _), _)| (*at).min(next));
            let pause = until.saturating_duration_since(now);
            state = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Deadline<'_> {
    fn drop(&mut self) {
        self.timer.state.lock().unwrap_or_else(PoisonError::into_inner).deadlines.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_limit_is_raised_at_its_time_and_not_after_it_was_dropped() {
        let timer = Timer::default();
        std::thread::scope(|scope| {
            scope.spawn(|| timer.run(Duration::from_secs(60), || {}, || {}));
            let (kept, dropped) = (Interrupt::default(), Interrupt::default());
            let at = Instant::now() + Duration::from_millis(20);
            let _limit = timer.limit(kept.clone(), at);
            drop(timer.limit(dropped.clone(), at));
            while kept.check().is_ok() {
                assert!(at.elapsed() < Duration::from_secs(10));
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(Instant::now() >= at);
            assert_eq!(kept.check().unwrap_err().code(), Code::MaxTimeMSExpired);
            assert!(dropped.check().is_ok());
            timer.stop();
        });
    }
}
