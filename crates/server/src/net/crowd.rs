//! Many active connections on few threads: while there are more of them than a few for each processor, they are divided
//! into one group for each, and a thread drives a group: it waits for all its connections at once and answers one request
//! of each that has some. With a thread for each connection the processors would be busy with changing threads.
//!
//! Nobody waits for somebody else's long command. A thread that is about to wait for the disk, or for what is to come, gives
//! its group to another, and keeps the one connection, as if there had been no crowd. Where nobody knew beforehand that a
//! request would be long, a watcher finds out within milliseconds, and takes the group away.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polling::{Event, Events, PollMode, Poller};

use super::{After, Connection, LINGER, Work};
use crate::client::Client;
use crate::server::Server;

/// How often the watcher looks.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// A request that waits for something loses the group after so many looks. Those for a lock that others have for a moment
/// are shorter, and then another thread would only be one more that waits.
const WAITS_MAX: u32 = 5;
/// One that keeps its processor busy.
const LOOKS_MAX: u32 = 10;

thread_local! {
    /// The group that this thread drives.
    static DRIVEN: RefCell<Option<(Arc<Server>, Turn)>> = const { RefCell::new(None) };
}

/// A request is about to wait for long: whoever shares this thread gets another.
pub(crate) fn step_aside() {
    let driven = DRIVEN.with_borrow_mut(Option::take);
    if let Some((server, turn)) = driven
        && let Some(next) = server.crowd.hand_over(turn)
    {
        server.employ(Work::Drive(next));
    }
}

pub(crate) struct Crowd {
    groups: Box<[Group]>,
    /// Connections that are being served in any way.
    active: AtomicUsize,
    members: AtomicUsize,
    stopped: Mutex<bool>,
    changed: Condvar,
}

/// The right to drive a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turn {
    group: usize,
    number: u64,
}

struct Group {
    poller: Poller,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    members: HashMap<usize, Member>,
    /// The turn that counts; an earlier one has been taken over.
    turn: u64,
    is_driven: bool,
    /// Where Linux tells about the driver.
    thread: Option<std::path::PathBuf>,
    serving: Option<usize>,
    /// Requests served, so that the watcher sees whether there was one since it last looked.
    served: u64,
    looked: (u64, u32),
}

struct Member {
    client: Arc<Client>,
    /// Not here while it is being served.
    connection: Option<Box<Connection>>,
    /// Since it was last looked who is idle.
    was_active: bool,
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A member leaves.
    fn remove(&self, state: &mut State, key: usize) -> Option<Member> {
        let member = state.members.remove(&key)?;
        // Cannot fail for a socket that was added and is still open.
        let _ = self.poller.delete(&member.client.stream);
        Some(member)
    }
}

impl Crowd {
    pub fn new(processors: usize) -> io::Result<Crowd> {
        let group = || Ok(Group { poller: Poller::new()?, state: Mutex::default() });
        Ok(Crowd {
            groups: (0..processors.max(1)).map(|_| group()).collect::<io::Result<_>>()?,
            active: AtomicUsize::new(0),
            members: AtomicUsize::new(0),
            stopped: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Connections in groups.
    pub fn members(&self) -> usize {
        self.members.load(Ordering::Relaxed)
    }

    /// A connection that waited has something to do.
    pub fn enter(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    /// One waits again, or is closed.
    pub fn leave(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether connections are to be served in groups.
    pub fn is_crowded(&self) -> bool {
        self.active.load(Ordering::Relaxed) > 2 * self.groups.len()
    }

    /// Whether there is no need for groups any more.
    fn is_over(&self) -> bool {
        self.active.load(Ordering::Relaxed) <= self.groups.len()
    }

    /// Takes a connection into the smallest group. The turn is for somebody to take, if nobody drives the group.
    pub fn join(&self, connection: Box<Connection>) -> Result<Option<Turn>, Box<Connection>> {
        let sizes = self.groups.iter().map(|group| group.lock().members.len());
        let at = sizes.enumerate().min_by_key(|(_, size)| *size).map_or(0, |(at, _)| at);
        let (group, key) = (&self.groups[at], connection.key());
        let mut state = group.lock();
        let client = Arc::clone(connection.client());
        // SAFETY: the socket is closed only with the client, which the group has until `remove` takes both away.
        let added = unsafe { group.poller.add_with_mode(&client.stream, Event::readable(key), PollMode::Level) };
        if added.is_err() {
            return Err(connection);
        }
        state.members.insert(key, Member { client, connection: Some(connection), was_active: true });
        if self.members.fetch_add(1, Ordering::Relaxed) == 0 {
            let _stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
            self.changed.notify_all();
        }
        if state.is_driven {
            return Ok(None);
        }
        state.is_driven = true;
        state.turn += 1;
        Ok(Some(Turn { group: at, number: state.turn }))
    }

    fn left(&self, member: Option<Member>) -> Option<Box<Connection>> {
        member.and_then(|member| {
            self.members.fetch_sub(1, Ordering::Relaxed);
            member.connection
        })
    }

    /// Drives a group until it has no members, or another takes it over.
    pub fn drive(&self, turn: Turn, server: &Arc<Server>) {
        let Some(group) = self.groups.get(turn.group) else { return };
        group.lock().thread = own_status();
        DRIVEN.set(Some((Arc::clone(server), turn)));
        self.drive_on(group, turn, server);
        DRIVEN.set(None);
    }

    fn drive_on(&self, group: &Group, turn: Turn, server: &Arc<Server>) {
        let (mut events, mut swept) = (Events::new(), Instant::now());
        loop {
            events.clear();
            if group.poller.wait(&mut events, Some(LINGER)).is_err() {
                // Nothing that a client does makes waiting fail; whatever it is, do not spin on it.
                std::thread::sleep(Duration::from_millis(10));
            }
            if server.is_stopping() {
                return;
            }
            for event in events.iter() {
                if !self.serve(group, turn, event.key, server) {
                    return;
                }
            }
            let leaving = if self.is_over() {
                self.sweep(group, true)
            } else if swept.elapsed() >= LINGER {
                swept = Instant::now();
                self.sweep(group, false)
            } else {
                continue;
            };
            for (connection, after) in leaving {
                server.settle(connection, after);
            }
            let mut state = group.lock();
            if state.members.is_empty() {
                state.is_driven = false;
                return;
            }
        }
    }

    /// Serves one member. False if the group is another's meanwhile.
    fn serve(&self, group: &Group, turn: Turn, key: usize, server: &Arc<Server>) -> bool {
        let taken = {
            let mut state = group.lock();
            let member = state.members.get_mut(&key);
            let taken = member.and_then(|member| {
                member.was_active = true;
                member.connection.take()
            });
            if taken.is_some() {
                state.serving = Some(key);
            }
            taken
        };
        let Some(mut connection) = taken else { return true };
        let after = connection.serve_ready();
        let mut state = group.lock();
        if state.turn != turn.number {
            drop(state);
            connection.was_held_up();
            server.settle(connection, if let After::Stay = after { After::Own } else { after });
            return false;
        }
        state.serving = None;
        state.served += 1;
        if let After::Stay = after {
            if let Some(member) = state.members.get_mut(&key) {
                member.connection = Some(connection);
            }
            return true;
        }
        let member = group.remove(&mut state, key);
        drop(state);
        self.left(member);
        server.settle(connection, after);
        true
    }

    /// Takes out who has been idle, or everybody.
    fn sweep(&self, group: &Group, everybody: bool) -> Vec<(Box<Connection>, After)> {
        let mut state = group.lock();
        let mut leaving = Vec::new();
        for (key, member) in &mut state.members {
            let was_active = std::mem::replace(&mut member.was_active, false);
            if everybody || !was_active {
                leaving.push((*key, was_active));
            }
        }
        let mut out = Vec::with_capacity(leaving.len());
        for (key, was_active) in leaving {
            if let Some(mut connection) = self.left(group.remove(&mut state, key)) {
                let after = if was_active { After::Own } else { connection.rest() };
                out.push((connection, after));
            }
        }
        out
    }

    /// Looks for groups whose drivers are held up, until stopped. `take_over` gives the turn to another thread.
    pub fn watch(&self, mut take_over: impl FnMut(Turn)) {
        loop {
            {
                let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
                while !*stopped && self.members.load(Ordering::Relaxed) == 0 {
                    stopped = self.changed.wait(stopped).unwrap_or_else(PoisonError::into_inner);
                }
                if *stopped {
                    return;
                }
            }
            std::thread::sleep(LOOK_EVERY);
            for (at, group) in self.groups.iter().enumerate() {
                if let Some(number) = self.taken_over(group) {
                    take_over(Turn { group: at, number });
                }
            }
        }
    }

    /// A new turn for a group whose driver has been at one request for too many looks.
    fn taken_over(&self, group: &Group) -> Option<u64> {
        let mut state = group.lock();
        let (served, looks) = state.looked;
        let is_same = state.serving.is_some() && served == state.served;
        state.looked = (state.served, if is_same { looks + 1 } else { 0 });
        let waits = || looks >= WAITS_MAX && state.thread.as_deref().is_some_and(|status| !is_runnable(status));
        (is_same && (looks >= LOOKS_MAX || waits())).then(|| self.without_driver(group, &mut state))?
    }

    /// A new turn for the group of a driver that knows that its request takes long.
    fn hand_over(&self, turn: Turn) -> Option<Turn> {
        let group = self.groups.get(turn.group)?;
        let mut state = group.lock();
        let number = (state.turn == turn.number).then(|| self.without_driver(group, &mut state))??;
        Some(Turn { number, ..turn })
    }

    /// The next turn; the connection that is being served stays with its thread.
    fn without_driver(&self, group: &Group, state: &mut State) -> Option<u64> {
        let key = state.serving.take()?;
        self.left(group.remove(state, key));
        state.turn += 1;
        Some(state.turn)
    }

    /// Ends the watcher; gives back the members.
    pub fn stop(&self) -> Vec<Connection> {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
        let mut out = Vec::new();
        for group in &self.groups {
            let mut state = group.lock();
            let keys: Vec<usize> = state.members.keys().copied().collect();
            out.extend(keys.into_iter().filter_map(|key| self.left(group.remove(&mut state, key))).map(|one| *one));
        }
        out
    }
}

/// Where Linux tells whether this thread runs.
fn own_status() -> Option<std::path::PathBuf> {
    Some(std::path::Path::new("/proc").join(std::fs::read_link("/proc/thread-self").ok()?).join("stat"))
}

/// Whether a thread runs, or would if there were a processor for it.
fn is_runnable(status: &std::path::Path) -> bool {
    let Ok(text) = std::fs::read_to_string(status) else { return true };
    // The name in parentheses may hold anything.
    text.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('R'))
}
