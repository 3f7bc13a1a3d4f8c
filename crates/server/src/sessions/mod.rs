//! Logical sessions: when each was last heard of, how far its retryable writes got, and its open transaction.
//!
//! A command with a `txnNumber` has its session for itself until it ends; another one with the same session waits. What
//! retryable writes did is in the store, in the same commit as the write, so it outlives the server.

mod checked_out;
mod joint;
mod lsid;
mod retry;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use espalier_query::Interrupt;
use espalier_store::{RememberedSession, SessionId};
use espalier_value::{Code, Error, Result};

pub use checked_out::{CheckedOut, Ending, Seen};
pub use joint::{Joint, Participant};
pub use lsid::{Lsid, NOBODY, Owner, Uid, uid};
pub use retry::{Retry, StatementIds};

const SHARDS: usize = 16;
/// How often a command that waits for its session looks whether to go on waiting.
const PATIENCE: Duration = Duration::from_millis(20);

pub struct Sessions {
    shards: [Shard; SHARDS],
    max_per_shard: usize,
    timeout: Duration,
}

#[derive(Default)]
struct Shard {
    sessions: Mutex<HashMap<SessionId, Session>>,
    /// A command has given its session back.
    returned: Condvar,
}

struct Session {
    /// `None` after a restart, until somebody uses it.
    named: Option<Named>,
    last_used: Instant,
    /// The newest number of a retryable write or transaction, -1 before the first.
    number: i64,
    state: State,
    /// The command that has the session for itself.
    busy: Option<Interrupt>,
    /// What is to happen when that command ends.
    after: After,
    /// Statements beyond the first may be remembered.
    many: bool,
}

/// What a session is called, and who uses it.
#[derive(Clone)]
struct Named {
    lsid: Lsid,
    /// `user@database`; empty without authentication.
    user: String,
}

/// A session for who looks at them.
pub struct Listed {
    pub lsid: Lsid,
    pub user: String,
    /// How long ago it was last used.
    pub idle: Duration,
    /// Its transaction, if no command is using it at the moment.
    pub transaction: Option<IdleTransaction>,
}

/// A transaction between its commands.
pub struct IdleTransaction {
    pub number: i64,
    pub open: Duration,
    /// Of that, in commands.
    pub active: Duration,
}

/// What the newest number is.
enum State {
    /// Nothing yet.
    Fresh,
    Retryable,
    Open {
        joint: Arc<Joint>,
        since: Instant,
        /// How long commands have been using it, those that have ended.
        active: Duration,
    },
    Committed,
    Aborted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Nothing,
    /// Its transaction has taken too long.
    Abort,
    /// The session was ended.
    End,
}

/// A session that is gone, and what it leaves behind for others to clear away.
pub struct Gone {
    pub key: SessionId,
    /// It may have left statements in the store.
    pub wrote: bool,
}

impl Sessions {
    pub fn new(max: usize, timeout: Duration) -> Sessions {
        Sessions { shards: Default::default(), max_per_shard: max.div_ceil(SHARDS), timeout }
    }

    /// Takes note of what the store remembers from the time before this server started.
    pub fn restore(&self, remembered: &[RememberedSession]) {
        for past in remembered {
            let mut sessions = self.shard(&past.session).lock();
            let session = sessions.entry(past.session).or_insert_with(Session::new);
            session.number = past.txn_number;
            session.state = if past.committed { State::Committed } else { State::Retryable };
            session.many = true;
        }
    }

    fn shard(&self, id: &SessionId) -> &Shard {
        let mixed = id.iter().fold(0u8, |mix, byte| mix.rotate_left(3) ^ byte);
        &self.shards[usize::from(mixed) % SHARDS]
    }

    /// Notes that a session is in use, and begins it if it is new.
    pub fn touch(&self, lsid: &Lsid, owner: Option<&Owner>) -> Result<()> {
        let key = lsid.key();
        used(&mut self.shard(&key).lock(), &key, lsid, owner, self.max_per_shard).map(|_| ())
    }

    /// Waits until no other command has the session for itself, and takes it.
    pub fn check_out(&self, lsid: &Lsid, owner: Option<&Owner>, interrupt: &Interrupt) -> Result<CheckedOut<'_>> {
        let key = lsid.key();
        let shard = self.shard(&key);
        let mut sessions = shard.lock();
        loop {
            let session = used(&mut sessions, &key, lsid, owner, self.max_per_shard)?;
            if session.busy.is_none() {
                session.busy = Some(interrupt.clone());
                return Ok(CheckedOut::new(shard, key, *lsid));
            }
            interrupt.check()?;
            let waited = shard.returned.wait_timeout(sessions, PATIENCE);
            sessions = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends a session, its transaction included; one that a command is using right away after it.
    pub fn end(&self, lsid: &Lsid) -> Option<Gone> {
        let key = lsid.key();
        let mut sessions = self.shard(&key).lock();
        let session = sessions.get_mut(&key)?;
        if let Some(command) = &session.busy {
            session.after = After::End;
            if matches!(session.state, State::Open { .. }) {
                command.raise(Code::Interrupted);
            }
            return None;
        }
        let session = sessions.remove(&key)?;
        // Letting go of a transaction may take a while; nobody should wait for that.
        drop(sessions);
        let wrote = session.number >= 0;
        session.state.abort();
        Some(Gone { key, wrote })
    }

    /// The sessions that somebody has used since the server started.
    pub fn list(&self) -> Vec<Listed> {
        let describe = |session: &Session| {
            let Named { lsid, user } = session.named.clone()?;
            let transaction = match &session.state {
                State::Open { since, active, .. } if session.busy.is_none() => {
                    Some(IdleTransaction { number: session.number, open: since.elapsed(), active: *active })
                }
                _ => None,
            };
            Some(Listed { lsid, user, idle: session.last_used.elapsed(), transaction })
        };
        self.shards.iter().flat_map(|shard| shard.lock().values().filter_map(describe).collect::<Vec<_>>()).collect()
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Open transactions: all, and those that no command is using.
    pub fn open_transactions(&self) -> (u64, u64) {
        let mut counts = (0, 0);
        for shard in &self.shards {
            for session in shard.lock().values().filter(|session| matches!(session.state, State::Open { .. })) {
                counts.0 += 1;
                counts.1 += u64::from(session.busy.is_none());
            }
        }
        counts
    }

    /// Forgets the sessions that nobody has used for long.
    pub fn expire(&self) -> Vec<Gone> {
        let mut gone = Vec::new();
        for shard in &self.shards {
            shard.lock().retain(|key, session| {
                let held = session.busy.is_some() || matches!(session.state, State::Open { .. });
                let keep = held || session.last_used.elapsed() < self.timeout;
                if !keep {
                    gone.push(Gone { key: *key, wrote: session.number >= 0 });
                }
                keep
            });
        }
        gone
    }

    /// Aborts the transactions that have been open for longer than this; says whose and which.
    pub fn abort_overdue(&self, lifetime: Duration) -> Vec<([u8; 16], i64)> {
        let mut overdue = Vec::new();
        let mut aborted = Vec::new();
        for shard in &self.shards {
            for (key, session) in shard.lock().iter_mut() {
                match &session.state {
                    State::Open { since, .. } if since.elapsed() > lifetime => {}
                    _ => continue,
                }
                match &session.busy {
                    // Its command ends with an error, which aborts the transaction.
                    Some(command) => {
                        command.raise(Code::TransactionExceededLifetimeLimitSeconds);
                        session.after = After::Abort;
                    }
                    None => aborted.push(std::mem::replace(&mut session.state, State::Aborted)),
                }
                overdue.push((session.named.as_ref().map_or(*key, |named| named.lsid.id), session.number));
            }
        }
        aborted.into_iter().for_each(State::abort);
        overdue
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn new() -> Session {
        Session {
            named: None,
            last_used: Instant::now(),
            number: -1,
            state: State::Fresh,
            busy: None,
            after: After::Nothing,
            many: false,
        }
    }
}

impl State {
    fn abort(self) {
        if let State::Open { joint, since, .. } = self {
            joint.abort(since.elapsed());
        }
    }
}

fn used<'s>(
    sessions: &'s mut HashMap<SessionId, Session>,
    key: &SessionId,
    lsid: &Lsid,
    owner: Option<&Owner>,
    max: usize,
) -> Result<&'s mut Session> {
    if sessions.len() >= max && !sessions.contains_key(key) {
        let message = "Unable to add session to the server because it has reached its limit of sessions; end sessions \
                       that are no longer used, or raise --max-sessions";
        return Err(Error::new(Code::TooManyLogicalSessions, message));
    }
    let session = sessions.entry(*key).or_insert_with(Session::new);
    if session.named.is_none() {
        // Who acts for somebody else is not who the session belongs to.
        let user = owner.filter(|owner| owner.uid == lsid.uid).map(|owner| owner.name.clone()).unwrap_or_default();
        session.named = Some(Named { lsid: *lsid, user });
    }
    session.last_used = Instant::now();
    Ok(session)
}

/// `01234567-89ab-…`.
pub fn uuid_text(id: &[u8; 16]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(36);
    for (i, byte) in id.iter().enumerate() {
        let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
        let _ = write!(text, "{dash}{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests;
