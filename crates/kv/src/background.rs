//! The threads: one keeps the log moving, one flushes, one compacts.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::engine::{Engine, Woken};
use crate::{KvError, Result};

/// Without a flush for this long, compaction does what was not worth doing before.
const IDLE_AFTER: Duration = Duration::from_secs(10);

/// Memtables whose memory is kept for the next ones until a while has passed without any.
const BUSY_TABLES: usize = 4;

/// A thread's name and what it does until the engine stops.
type Worker = (&'static str, fn(&Engine));

pub(crate) fn start(engine: &Arc<Engine>) -> Result<Vec<JoinHandle<()>>> {
    let threads: [Worker; 3] =
        [("kv-log", |engine| engine.log.run_ticker()), ("kv-flush", run_flush), ("kv-compact", run_compact)];
    let mut started = Vec::new();
    for (name, run) in threads {
        let engine = engine.clone();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || guarded(&engine, name, run));
        match thread {
            Ok(thread) => started.push(thread),
            Err(error) => return Err(KvError::io("thread".as_ref(), "start", error)),
        }
    }
    Ok(started)
}

/// A thread that dies of a bug must not leave commits waiting for it.
fn guarded(engine: &Engine, name: &str, run: fn(&Engine)) {
    let result = panic::catch_unwind(AssertUnwindSafe(|| run(engine)));
    if result.is_err() {
        let reason = format!("the thread {name} panicked");
        engine.poison.set(&KvError::Poisoned { reason });
        engine.log.wake_waiters();
    }
}

/// Failures are kept in the poison, where the next commit finds them.
fn run_flush(engine: &Engine) {
    loop {
        if !engine.poison.is_set() {
            let prepared = engine.prepare_segment();
            if engine.poisoned_by(prepared).is_ok() {
                while !engine.signals.is_stopped() && matches!(engine.flush_oldest(), Ok(true)) {}
            }
        }
        // Under load as many tables are on their way to disk at once, and fresh memory costs more than it holds.
        engine.pool.trim(BUSY_TABLES);
        match engine.signals.wait_flush() {
            Woken::Stopped => return,
            // History grows old also when nothing is written.
            Woken::Idle if !engine.poison.is_set() => {
                let removed = engine.remove_old_segments();
                drop(engine.poisoned_by(removed));
            }
            Woken::Idle | Woken::Asked => {}
        }
    }
}

fn run_compact(engine: &Engine) {
    let mut is_idle = false;
    loop {
        while !engine.signals.is_stopped()
            && !engine.poison.is_set()
            && matches!(engine.compact_step(is_idle), Ok(true))
        {
            engine.bury();
        }
        engine.bury();
        is_idle = match engine.signals.wait_compact(IDLE_AFTER) {
            Woken::Asked => false,
            Woken::Idle => {
                engine.pool.trim(1);
                if !engine.poison.is_set() && engine.expire_past().is_ok() {
                    engine.bury();
                }
                true
            }
            Woken::Stopped => return,
        };
    }
}

impl Engine {
    /// Removes files that nothing refers to any more.
    pub(crate) fn bury(&self) {
        if !self.context.graveyard.is_empty() {
            let buried = self.context.graveyard.bury(&*self.disk, &self.context.cache);
            // A file that cannot be removed wastes space, no more; the next start tries again.
            drop(buried);
        }
    }
}
