//! Writes under way outside a transaction, by generation: so that one can wait for those that began before a change of
//! the collection without holding up those that came after.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use espalier_query::Context;
use espalier_value::Result;

use crate::core::lock;

/// How often somebody who waits looks again. It happens when a pattern is declared, not in ordinary work.
const POLL: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub struct Writers {
    generation: AtomicUsize,
    /// Even and odd generations.
    under_way: [AtomicU64; 2],
    /// One waits at a time, so that no more than two generations are under way.
    settling: Mutex<()>,
}

/// Held while a write is under way.
pub struct Writing {
    live: Arc<super::Live>,
    generation: usize,
}

impl Writers {
    /// Counts a write until the guard is dropped.
    pub fn begin(live: &Arc<super::Live>) -> Writing {
        let writers = &live.writers;
        loop {
            let generation = writers.generation.load(Ordering::SeqCst) % 2;
            writers.under_way[generation].fetch_add(1, Ordering::SeqCst);
            // Counted in a generation that ended meanwhile, nobody might wait for it.
            if writers.generation.load(Ordering::SeqCst) % 2 == generation {
                return Writing { live: live.clone(), generation };
            }
            writers.under_way[generation].fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Returns when every write that began before the call has ended.
    pub fn settle(&self, context: &Context) -> Result<()> {
        let _one_at_a_time = lock(&self.settling);
        let ending = self.generation.load(Ordering::SeqCst) % 2;
        // Left over from a call that was interrupted.
        self.wait(1 - ending, context)?;
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.wait(ending, context)
    }

    fn wait(&self, generation: usize, context: &Context) -> Result<()> {
        while self.under_way[generation].load(Ordering::SeqCst) > 0 {
            context.interrupt.check()?;
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.live.writers.under_way[self.generation].fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc;

    use super::super::Live;
    use super::*;

    #[test]
    fn waits_for_earlier_writes_only() {
        let live = Arc::new(Live::default());
        let earlier = Writers::begin(&live);
        let (done, settled) = mpsc::channel();
        let waiting = {
            let live = live.clone();
            std::thread::spawn(move || {
                live.writers.settle(&Context::default()).unwrap();
                done.send(()).unwrap();
            })
        };
        while live.writers.generation.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let _later = Writers::begin(&live);
        assert!(settled.recv_timeout(Duration::from_millis(50)).is_err());
        drop(earlier);
        settled.recv_timeout(Duration::from_secs(10)).unwrap();
        waiting.join().unwrap();
    }
}
