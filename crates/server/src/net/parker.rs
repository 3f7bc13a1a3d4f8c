//! Where idle connections wait: one epoll, one thread, and a timer for those that are to be answered later (`hello` with
//! `maxAwaitTimeMS`, `getMore` on a change stream).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polling::{Event, Events, Poller};

use super::{Connection, Wake};

pub(crate) struct Parker {
    poller: Poller,
    parked: Mutex<Parked>,
    /// How many wait for changes, for a look without the lock.
    watching: AtomicUsize,
    /// Something has changed that those are to be told of.
    stirred: AtomicBool,
}

#[derive(Default)]
struct Parked {
    connections: HashMap<usize, (Box<Connection>, Option<Instant>)>,
    timers: BTreeSet<(Instant, usize)>,
    /// Those that wait for changes.
    watching: HashSet<usize>,
    stopped: bool,
}

impl Parker {
    pub fn new() -> io::Result<Parker> {
        Ok(Parker {
            poller: Poller::new()?,
            parked: Mutex::default(),
            watching: AtomicUsize::new(0),
            stirred: AtomicBool::new(false),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Parked> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets those who wait for changes look. Cheap if there are none, or it has just been called.
    pub fn stir(&self) {
        if self.watching.load(Ordering::SeqCst) > 0 && !self.stirred.swap(true, Ordering::SeqCst) {
            // Failing to wake the thread only delays.
            let _ = self.poller.notify();
        }
    }

    /// Keeps a connection until it has something to read, or until `until`, or (`changes`) until there is a stir. Gives it
    /// back if it cannot be watched.
    pub fn park(
        &self,
        connection: Box<Connection>,
        until: Option<Instant>,
        changes: bool,
    ) -> Result<(), Box<Connection>> {
        let key = connection.key();
        let mut parked = self.lock();
        if parked.stopped {
            return Err(connection);
        }
        // SAFETY: the socket is closed only with the connection, which the map owns from here on, and `take` removes it
        // from the poller before the connection leaves the map. The lock is held, so that an event that arrives at once
        // finds the connection in the map.
        if unsafe { self.poller.add(connection.stream(), Event::readable(key)) }.is_err() {
            return Err(connection);
        }
        if let Some(at) = until {
            let is_first = parked.timers.first().is_none_or(|(first, _)| at < *first);
            parked.timers.insert((at, key));
            if is_first {
                // The thread sleeps until the timer that was first until now. Failing to wake it only delays.
                let _ = self.poller.notify();
            }
        }
        parked.connections.insert(key, (connection, until));
        if changes && parked.watching.insert(key) {
            self.watching.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn take(&self, parked: &mut Parked, key: usize) -> Option<Box<Connection>> {
        let (connection, until) = parked.connections.remove(&key)?;
        if let Some(at) = until {
            parked.timers.remove(&(at, key));
        }
        if parked.watching.remove(&key) {
            self.watching.fetch_sub(1, Ordering::SeqCst);
        }
        // Cannot fail for a socket that was added and is still open.
        let _ = self.poller.delete(connection.stream());
        Some(connection)
    }

    /// Runs until stopped; hands over every connection that has something to do.
    pub fn run(&self, mut hand_over: impl FnMut(Box<Connection>, Wake)) {
        let mut events = Events::new();
        loop {
            let pause = match &*self.lock() {
                parked if parked.stopped => return,
                parked => parked.timers.first().map(|(at, _)| at.saturating_duration_since(Instant::now())),
            };
            events.clear();
            if self.poller.wait(&mut events, pause).is_err() {
                // Nothing that a client does makes waiting fail; whatever it is, do not spin on it.
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            let mut ready = Vec::new();
            let mut parked = self.lock();
            for event in events.iter() {
                ready.extend(self.take(&mut parked, event.key).map(|connection| (connection, Wake::Readable)));
            }
            if self.stirred.swap(false, Ordering::SeqCst) {
                let watching: Vec<usize> = parked.watching.iter().copied().collect();
                for key in watching {
                    ready.extend(self.take(&mut parked, key).map(|connection| (connection, Wake::Changed)));
                }
            }
            let now = Instant::now();
            while let Some(&(at, key)) = parked.timers.first()
                && at <= now
            {
                ready.extend(self.take(&mut parked, key).map(|connection| (connection, Wake::Timer)));
            }
            drop(parked);
            ready.into_iter().for_each(|(connection, wake)| hand_over(connection, wake));
        }
    }

    /// Ends the thread; gives back what is parked.
    pub fn stop(&self) -> Vec<Connection> {
        let mut parked = self.lock();
        parked.stopped = true;
        let keys: Vec<usize> = parked.connections.keys().copied().collect();
        let connections =
            keys.into_iter().filter_map(|key| self.take(&mut parked, key)).map(|connection| *connection).collect();
        let _ = self.poller.notify();
        connections
    }
}
