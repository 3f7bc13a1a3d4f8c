//! Threads that a long scan may borrow: as many as there are processors that no command is using.
//!
//! A helper works on one small part at a time and looks each time whether commands have come that need its processor, or
//! other programs on the machine. It costs a command that needs no help two additions to a counter.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use espalier_query::Helpers;

/// What is known of other programs is looked at again after this long.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// An idle helper ends after this long.
const IDLE: Duration = Duration::from_secs(10);

type Task = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
pub struct Crew {
    processors: usize,
    /// Commands that are being executed and do not wait.
    running: AtomicUsize,
    /// Helpers with a task.
    helping: AtomicUsize,
    /// Threads of the whole machine that want a processor, and when they were counted.
    runnable: Mutex<Option<(Instant, usize)>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// Threads that wait for a task.
    idle: usize,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Crew {
    pub fn new(processors: usize) -> Arc<Crew> {
        Arc::new(Crew {
            processors,
            running: AtomicUsize::new(0),
            helping: AtomicUsize::new(0),
            runnable: Mutex::default(),
            shared: Arc::default(),
        })
    }

    /// One for this machine.
    pub fn of_machine() -> Arc<Crew> {
        Crew::new(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Notes that a command computes, until the guard is dropped.
    pub fn enter(self: &Arc<Self>) -> Computes {
        self.running.fetch_add(1, Ordering::Relaxed);
        Computes(Arc::clone(self))
    }

    /// Notes that a command waits, until the guard is dropped.
    pub fn pause(self: &Arc<Self>) -> Pauses {
        self.running.fetch_sub(1, Ordering::Relaxed);
        Pauses(Arc::clone(self))
    }

    fn busy(&self) -> usize {
        self.running.load(Ordering::Relaxed) + self.helping.load(Ordering::Relaxed)
    }

    /// Threads of the whole machine that want a processor; 0 where that cannot be known.
    fn runnable(&self) -> usize {
        let mut known = self.runnable.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some((at, count)) if at.elapsed() < LOOK_EVERY => count,
            _ => {
                let count = count_runnable().unwrap_or(0);
                *known = Some((Instant::now(), count));
                count
            }
        }
    }

    /// Takes a processor for a helper, if there is one. Whoever asks is running.
    fn reserve(&self) -> bool {
        if self.busy() >= self.processors || self.runnable() >= self.processors {
            return false;
        }
        self.helping.fetch_add(1, Ordering::Relaxed);
        if self.busy() > self.processors {
            self.helping.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        true
    }
}

impl Helpers for Crew {
    fn waits(&self) {
        crate::net::step_aside();
    }

    fn has_room(&self) -> bool {
        self.busy() < self.processors
    }

    fn help(self: Arc<Self>, task: Task) -> bool {
        if !self.reserve() {
            return false;
        }
        let reserved = Reserved(Arc::clone(&self));
        let task: Task = Box::new(move || {
            let _reserved = reserved;
            task();
        });
        let mut state = self.shared.lock();
        state.tasks.push_back(task);
        if state.idle > 0 {
            self.shared.wake.notify_one();
            return true;
        }
        let shared = Arc::clone(&self.shared);
        let spawned = std::thread::Builder::new().name("helper".into()).spawn(move || shared.work());
        if spawned.is_err() {
            // What was asked for can do without.
            state.tasks.pop_back();
        }
        spawned.is_ok()
    }

    fn is_crowded(&self) -> bool {
        self.busy() > self.processors || self.runnable() > self.processors
    }
}

/// The fourth field of Linux's `/proc/loadavg`: `2/345`.
fn count_runnable() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a helper.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                drop(state);
                // Whoever asked for it notices what is missing.
                let _ = catch_unwind(AssertUnwindSafe(task));
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let waits = |state: &mut State| state.tasks.is_empty();
            let woken = self.wake.wait_timeout_while(state, IDLE, waits);
            let (guard, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.idle -= 1;
            if timeout.timed_out() && state.tasks.is_empty() {
                return;
            }
        }
    }
}

/// A processor that a helper has.
struct Reserved(Arc<Crew>);

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.helping.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A command that computes.
pub struct Computes(Arc<Crew>);

impl Drop for Computes {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A command that waits.
pub struct Pauses(Arc<Crew>);

impl Drop for Pauses {
    fn drop(&mut self) {
        self.0.running.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc;

    use super::*;

    /// With nothing else on the machine.
    fn alone(processors: usize) -> Arc<Crew> {
        let crew = Crew::new(processors);
        *crew.runnable.lock().unwrap() = Some((Instant::now() + Duration::from_secs(3600), 1));
        crew
    }

    #[test]
    fn steps_back_for_other_programs() {
        let crew = alone(2);
        let _first = crew.enter();
        assert!(!crew.is_crowded());
        *crew.runnable.lock().unwrap() = Some((Instant::now() + Duration::from_secs(3600), 3));
        assert!(crew.is_crowded());
        assert!(!crew.clone().help(Box::new(|| ())));
        assert_eq!(crew.busy(), 1);
    }

    #[test]
    fn helps_only_where_a_processor_is_free() {
        let crew = alone(2);
        let first = crew.enter();
        assert!(crew.has_room());
        let (tell, told) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        assert!(crew.clone().help(Box::new(move || {
            tell.send(()).unwrap();
            wait.recv().unwrap();
        })));
        told.recv().unwrap();
        assert!(!crew.has_room() && !crew.is_crowded());
        assert!(!crew.clone().help(Box::new(|| ())));
        let second = crew.enter();
        assert!(crew.is_crowded());
        let waiting = crew.pause();
        assert!(!crew.is_crowded());
        drop(waiting);
        go.send(()).unwrap();
        drop((first, second));
        while crew.busy() > 0 {
            std::thread::yield_now();
        }
        assert!(crew.has_room());
    }

    #[test]
    fn a_panic_ends_a_task_and_not_the_helper() {
        let crew = alone(2);
        for _ in 0..3 {
            assert!(crew.clone().help(Box::new(|| panic!("a task that fails, for the test"))));
            while crew.busy() > 0 {
                std::thread::yield_now();
            }
        }
        assert!(!Crew::new(1).enter().0.has_room());
    }
}
