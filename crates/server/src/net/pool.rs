//! The threads that execute commands: as many as there are active connections, up to a limit; one that finds nothing to do
//! for a while ends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Connection, Turn, Wake};

/// What a thread is wanted for.
pub(crate) enum Work {
    Serve(Box<Connection>, Wake),
    Drive(Turn),
}

pub(crate) struct Pool {
    threads_max: usize,
    /// Groups that threads drive.
    drivers_max: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// Connections that wait for a thread, for a look without the lock.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Work>,
    threads: usize,
    idle: usize,
    stopped: bool,
}

/// A thread without work ends after this long.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// Deeply nested filters and expressions recurse; untouched stack costs nothing.
const STACK_BYTES: usize = 8 * 1024 * 1024;

impl Pool {
    pub fn new(threads_max: usize, drivers_max: usize) -> Pool {
        Pool {
            threads_max: threads_max.max(1),
            drivers_max,
            state: Mutex::default(),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a connection waits for a thread because all are busy.
    pub fn is_starved(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub fn threads(&self) -> usize {
        self.lock().threads
    }

    /// Queues work for the next free thread, or a new one. `run` is what a thread does with it.
    pub fn submit(self: &Arc<Self>, work: Work, run: impl Fn(Work) + Clone + Send + 'static) {
        let mut state = self.lock();
        if state.stopped {
            return;
        }
        // Many wait for one that drives a group, so there is always a thread for each processor beyond the limit.
        let is_driver = matches!(work, Work::Drive(_));
        match is_driver {
            true => state.queue.push_front(work),
            false => state.queue.push_back(work),
        }
        self.waiting.store(state.queue.len(), Ordering::Relaxed);
        if state.idle >= state.queue.len() {
            drop(state);
            self.changed.notify_one();
            return;
        }
        let drivers = if is_driver { self.drivers_max } else { 0 };
        if state.threads >= self.threads_max + drivers {
            return;
        }
        state.threads += 1;
        drop(state);
        let pool = Arc::clone(self);
        let spawned =
            thread::Builder::new().name("worker".into()).stack_size(STACK_BYTES).spawn(move || pool.run(&run));
        if spawned.is_err() {
            // No thread to be had: those that run take the connection when they get to it.
            self.lock().threads -= 1;
        }
    }

    fn run(&self, run: &impl Fn(Work)) {
        while let Some(work) = self.next() {
            run(work);
        }
        self.lock().threads -= 1;
        self.changed.notify_all();
    }

    fn next(&self) -> Option<Work> {
        let until = Instant::now() + IDLE_MAX;
        let mut state = self.lock();
        loop {
            if let Some(next) = state.queue.pop_front() {
                self.waiting.store(state.queue.len(), Ordering::Relaxed);
                return Some(next);
            }
            let left = until.saturating_duration_since(Instant::now());
            if state.stopped || left.is_zero() {
                return None;
            }
            state.idle += 1;
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
        }
    }

    /// Takes no more work and waits until the threads have ended, but not longer than `patience`. True if all have.
    pub fn stop(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        state.stopped = true;
        state.queue.clear();
        self.waiting.store(0, Ordering::Relaxed);
        self.changed.notify_all();
        while state.threads > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
