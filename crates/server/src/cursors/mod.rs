//! Open cursors: kept between a `find` and its `getMore`s, bounded in number, closed when nobody asks for long.

mod open;
mod reply;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use espalier_query::Interrupt;
use espalier_store::Namespace;
use espalier_value::{Code, Error, Result};

use crate::auth::names::UserName;
use crate::sessions::Lsid;

pub use open::{OpenCursor, Source};
pub use reply::{First, write_first};

/// Bytes of documents in one reply.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Documents in the first reply of a `find` or `aggregate` that does not say.
pub const FIRST_BATCH_DEFAULT: u64 = 101;

pub struct Cursors {
    max: usize,
    timeout_ms: AtomicU64,
    table: Mutex<HashMap<i64, Slot>>,
    pub opened: AtomicU64,
    pub timed_out: AtomicU64,
}

enum Slot {
    Idle {
        cursor: Box<OpenCursor>,
        since: Instant,
    },
    /// What it read is gone; the next `getMore` is told why.
    Ended {
        why: &'static str,
        since: Instant,
    },
    /// A `getMore` is at work with it.
    Busy {
        ns: Namespace,
        session: Option<Lsid>,
        owners: Vec<UserName>,
        /// A change stream tells itself that what it watches is gone.
        watches: bool,
        interrupt: Interrupt,
        killed: bool,
    },
}

/// What `killCursors` found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Killed {
    Killed,
    NotFound,
}

/// Figures for `serverStatus`.
#[derive(Default)]
pub struct Counts {
    pub open: u64,
    pub pinned: u64,
    pub no_timeout: u64,
}

impl Cursors {
    pub fn new(max: usize, timeout: Duration) -> Cursors {
        let (opened, timed_out) = Default::default();
        let timeout_ms = AtomicU64::new(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        Cursors { max, timeout_ms, table: Mutex::default(), opened, timed_out }
    }

    /// An idle cursor is closed after this long.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.load(Ordering::Relaxed))
    }

    pub fn set_timeout_ms(&self, ms: u64) {
        self.timeout_ms.store(ms, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Slot>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a cursor for later; gives its id.
    pub fn keep(&self, mut cursor: Box<OpenCursor>, mut new_id: impl FnMut() -> i64) -> Result<i64> {
        let mut table = self.lock();
        if table.len() >= self.max {
            let message = format!(
                "there are too many open cursors: the limit is {}; close cursors, read them to the end, or raise \
                 --max-cursors",
                self.max
            );
            return Err(Error::new(Code::TemporarilyUnavailable, message));
        }
        let mut id = new_id();
        while table.contains_key(&id) {
            id = new_id();
        }
        self.opened.fetch_add(1, Ordering::Relaxed);
        // The first batch has been written.
        cursor.batches_returned = 1;
        table.insert(id, Slot::Idle { cursor, since: Instant::now() });
        Ok(id)
    }

    /// Takes a cursor to read from it.
    pub fn take(&self, id: i64) -> Result<Taken<'_>> {
        let mut table = self.lock();
        match table.get_mut(&id) {
            None => Err(not_found(id)),
            Some(Slot::Busy { .. }) => Err(Error::new(Code::CursorInUse, format!("cursor id {id} is already in use"))),
            Some(Slot::Ended { why, .. }) => {
                let error = Error::new(Code::QueryPlanKilled, *why);
                table.remove(&id);
                Err(error)
            }
            Some(slot @ Slot::Idle { .. }) => {
                let Slot::Idle { cursor, .. } = slot else { return Err(not_found(id)) };
                let busy = Slot::Busy {
                    ns: cursor.ns.clone(),
                    session: cursor.session,
                    owners: cursor.owners.clone(),
                    watches: cursor.is_change_stream(),
                    interrupt: cursor.context.interrupt.clone(),
                    killed: false,
                };
                match std::mem::replace(slot, busy) {
                    Slot::Idle { cursor, .. } => Ok(Taken { cursor, place: Place { cursors: self, id, kept: false } }),
                    Slot::Busy { .. } | Slot::Ended { .. } => Err(not_found(id)),
                }
            }
        }
    }

    pub fn kill(&self, id: i64) -> Killed {
        self.kill_if(None, |candidate, _, _| candidate == id)
    }

    /// Who opened a cursor; `None` if there is none.
    pub fn owners(&self, id: i64) -> Option<Vec<UserName>> {
        match self.lock().get(&id)? {
            Slot::Idle { cursor, .. } => Some(cursor.owners.clone()),
            Slot::Busy { owners, .. } => Some(owners.clone()),
            Slot::Ended { .. } => None,
        }
    }

    /// Ends the cursors of a session.
    pub fn kill_session(&self, session: &Lsid) {
        self.kill_if(None, |_, _, owner| owner == Some(session));
    }

    /// Ends the cursors on a collection that is gone, and says why to who asks for more.
    pub fn end_collection(&self, ns: &Namespace, why: &'static str) {
        self.kill_if(Some(why), |_, at, _| at == ns);
    }

    pub fn end_database(&self, db: &str, why: &'static str) {
        self.kill_if(Some(why), |_, at, _| at.db() == db);
    }

    fn kill_if(&self, why: Option<&'static str>, which: impl Fn(i64, &Namespace, Option<&Lsid>) -> bool) -> Killed {
        let mut ended = Vec::new();
        let mut found = Killed::NotFound;
        let mut table = self.lock();
        table.retain(|id, slot| {
            let hit = match slot {
                Slot::Idle { cursor, .. } => which(*id, &cursor.ns, cursor.session.as_ref()),
                Slot::Busy { ns, session, .. } => which(*id, ns, session.as_ref()),
                Slot::Ended { .. } => false,
            };
            let watches = match slot {
                Slot::Idle { cursor, .. } => cursor.is_change_stream(),
                Slot::Busy { watches, .. } => *watches,
                Slot::Ended { .. } => false,
            };
            if !hit || (watches && why.is_some()) {
                return true;
            }
            found = Killed::Killed;
            match slot {
                Slot::Busy { interrupt, killed, .. } => {
                    interrupt.raise(if why.is_some() { Code::QueryPlanKilled } else { Code::CursorKilled });
                    *killed = true;
                    true
                }
                Slot::Idle { .. } => {
                    let since = Instant::now();
                    ended.push(std::mem::replace(slot, Slot::Ended { why: why.unwrap_or_default(), since }));
                    why.is_some()
                }
                Slot::Ended { .. } => true,
            }
        });
        // Closing a cursor may free a lot; nobody should wait for that.
        drop(table);
        drop(ended);
        found
    }

    /// Closes what has been idle for too long.
    pub fn expire(&self) {
        let (now, timeout) = (Instant::now(), self.timeout());
        let old: Vec<i64> = self
            .lock()
            .iter()
            .filter_map(|(id, slot)| match slot {
                Slot::Idle { cursor, since } if !cursor.no_timeout && now.duration_since(*since) > timeout => Some(*id),
                Slot::Ended { since, .. } if now.duration_since(*since) > timeout => Some(*id),
                _ => None,
            })
            .collect();
        for id in old {
            let slot = {
                let mut table = self.lock();
                match table.get(&id) {
                    Some(Slot::Idle { since, .. } | Slot::Ended { since, .. })
                        if now.duration_since(*since) > timeout =>
                    {
                        table.remove(&id)
                    }
                    _ => None,
                }
            };
            if slot.is_some() {
                self.timed_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    /// What `describe` makes of the cursors that no command is reading from, given their ids and how long they are idle.
    pub fn idle<T>(&self, mut describe: impl FnMut(i64, &OpenCursor, Duration) -> Option<T>) -> Vec<T> {
        let table = self.lock();
        let idle = table.iter().filter_map(|(id, slot)| match slot {
            Slot::Idle { cursor, since } => describe(*id, cursor, since.elapsed()),
            Slot::Ended { .. } | Slot::Busy { .. } => None,
        });
        idle.collect()
    }

    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for slot in self.lock().values() {
            counts.open += 1;
            match slot {
                Slot::Ended { .. } => {}
                Slot::Busy { .. } => counts.pinned += 1,
                Slot::Idle { cursor, .. } => counts.no_timeout += u64::from(cursor.no_timeout),
            }
        }
        counts
    }
}

fn not_found(id: i64) -> Error {
    Error::new(Code::CursorNotFound, format!("cursor id {id} not found"))
}

/// A cursor being read from. Dropped without [`Taken::put_back`], it is closed: at its end, or after an error.
pub struct Taken<'c> {
    cursor: Box<OpenCursor>,
    place: Place<'c>,
}

/// The cursor's place in the table, given up when dropped.
struct Place<'c> {
    cursors: &'c Cursors,
    id: i64,
    kept: bool,
}

impl Taken<'_> {
    pub fn id(&self) -> i64 {
        self.place.id
    }

    /// Leaves the cursor for the next `getMore`, unless it was killed meanwhile.
    pub fn put_back(self) {
        let Taken { cursor, mut place } = self;
        let mut table = place.cursors.lock();
        if let Some(slot @ Slot::Busy { killed: false, .. }) = table.get_mut(&place.id) {
            *slot = Slot::Idle { cursor, since: Instant::now() };
            place.kept = true;
        }
        // Before the place, whose end takes it too.
        drop(table);
    }
}

impl std::ops::Deref for Taken<'_> {
    type Target = OpenCursor;

    fn deref(&self) -> &OpenCursor {
        &self.cursor
    }
}

impl std::ops::DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut OpenCursor {
        &mut self.cursor
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.cursors.lock().remove(&self.id);
        }
    }
}
