//! How hard work in the background may work: as hard as it can while nobody else is there, and little of the time while
//! clients are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After this much work it looks whether clients are there.
const WORK: Duration = Duration::from_millis(1);
/// While they are it rests this many times as long as it worked. Work and rest are short, so that nobody waits long for a
/// processor, and seven eighths of one are left where there is only one.
const REST: u32 = 7;

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
            std::thread::sleep(worked * REST);
        }
        self.since = Instant::now();
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
}
