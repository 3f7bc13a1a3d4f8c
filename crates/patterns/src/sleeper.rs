//! A thread in the background that sleeps until something is due: started by the first who has something for it, woken by
//! every other, and ended with the store.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use espalier_value::{Error, Result};

#[derive(Default)]
pub struct Sleeper<S> {
    state: Mutex<State<S>>,
    changed: Condvar,
}

/// What it goes by.
#[derive(Default)]
pub struct State<S> {
    own: S,
    thread: Option<JoinHandle<()>>,
    stop: bool,
}

impl<S> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.own
    }
}

impl<S> DerefMut for State<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.own
    }
}

impl<S> Sleeper<S> {
    pub fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_stopping(&self) -> bool {
        self.lock().stop
    }

    /// Ends the thread when it is done with what it is at.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stop = true;
        let thread = state.thread.take();
        drop(state);
        self.changed.notify_all();
        if let Some(thread) = thread {
            // A panic has been reported by the hook already.
            let _ = thread.join();
        }
    }

    /// Wakes it up for a change, unless it has ended; `serve` is what the thread does.
    pub fn wake(&self, name: &str, change: impl FnOnce(&mut S), serve: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut state = self.lock();
        if state.stop {
            return Ok(());
        }
        change(&mut state.own);
        if state.thread.is_none() {
            let thread = std::thread::Builder::new().name(name.into()).spawn(serve);
            let thread =
                thread.map_err(|e| Error::internal(format!("the thread '{name}' could not be started: {e}")))?;
            state.thread = Some(thread);
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// The next thing to do, which `due` gives, or else when it is to be asked again; `None` at the end.
    pub fn next<T>(&self, mut due: impl FnMut(&mut S, Instant) -> Next<T>) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.stop {
                return None;
            }
            let now = Instant::now();
            state = match due(&mut state.own, now) {
                Next::Now(what) => return Some(what),
                Next::At(Some(at)) => self.wait(state, at.saturating_duration_since(now)),
                Next::At(None) => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Sleeps for so long, or until something changes.
    pub fn rest(&self, time: Duration) -> MutexGuard<'_, State<S>> {
        self.wait(self.lock(), time)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State<S>>, time: Duration) -> MutexGuard<'s, State<S>> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }
}

pub enum Next<T> {
    Now(T),
    /// Nothing before then, or before something changes.
    At(Option<Instant>),
}
