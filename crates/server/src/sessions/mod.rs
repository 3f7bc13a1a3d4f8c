//! Logical sessions: when each was last heard of, how far its retryable writes got, and its open transaction.
//!
//! A command with a `txnNumber` has its session for itself until it ends; another one with the same session waits. What
//! retryable writes did is in the store, in the same commit as the write, so it outlives the server.

mod checked_out;
mod joint;
mod retry;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use espalier_query::Interrupt;
use espalier_store::RememberedSession;
use espalier_value::{Code, Error, Result};

use crate::generic::SessionId;

pub use checked_out::{CheckedOut, Ending, Seen};
pub use joint::{Joint, Participant};
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

/// Whose a session is: made from the names of the users it was first used by. `None` without authentication.
pub type Owner = Option<u64>;

struct Session {
    /// `None` until somebody uses it who has a name.
    owner: Owner,
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

/// What the newest number is.
enum State {
    /// Nothing yet.
    Fresh,
    Retryable,
    Open {
        joint: Arc<Joint>,
        since: Instant,
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
    pub id: SessionId,
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
    pub fn touch(&self, id: &SessionId, owner: Owner) -> Result<()> {
        used(&mut self.shard(id).lock(), id, owner, self.max_per_shard).map(|_| ())
    }

    /// Whether a session may be ended by this client: its own, or anybody's without authentication.
    pub fn belongs_to(&self, id: &SessionId, owner: Owner) -> bool {
        let sessions = self.shard(id).lock();
        sessions.get(id).is_none_or(|session| owner.is_none() || session.owner.is_none() || session.owner == owner)
    }

    /// Waits until no other command has the session for itself, and takes it.
    pub fn check_out(&self, id: &SessionId, owner: Owner, interrupt: &Interrupt) -> Result<CheckedOut<'_>> {
        let shard = self.shard(id);
        let mut sessions = shard.lock();
        loop {
            let session = used(&mut sessions, id, owner, self.max_per_shard)?;
            if session.busy.is_none() {
                session.busy = Some(interrupt.clone());
                return Ok(CheckedOut::new(shard, *id));
            }
            interrupt.check()?;
            let waited = shard.returned.wait_timeout(sessions, PATIENCE);
            sessions = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends a session, its transaction included; one that a command is using right away after it.
    pub fn end(&self, id: &SessionId) -> Option<Gone> {
        let mut sessions = self.shard(id).lock();
        let session = sessions.get_mut(id)?;
        if let Some(command) = &session.busy {
            session.after = After::End;
            if matches!(session.state, State::Open { .. }) {
                command.raise(Code::Interrupted);
            }
            return None;
        }
        let session = sessions.remove(id)?;
        // Letting go of a transaction may take a while; nobody should wait for that.
        drop(sessions);
        let wrote = session.number >= 0;
        session.state.abort();
        Some(Gone { id: *id, wrote })
    }

    pub fn ids(&self) -> Vec<SessionId> {
        self.shards.iter().flat_map(|shard| shard.lock().keys().copied().collect::<Vec<_>>()).collect()
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
            shard.lock().retain(|id, session| {
                let held = session.busy.is_some() || matches!(session.state, State::Open { .. });
                let keep = held || session.last_used.elapsed() < self.timeout;
                if !keep {
                    gone.push(Gone { id: *id, wrote: session.number >= 0 });
                }
                keep
            });
        }
        gone
    }

    /// Aborts the transactions that have been open for longer than this; says whose and which.
    pub fn abort_overdue(&self, lifetime: Duration) -> Vec<(SessionId, i64)> {
        let mut overdue = Vec::new();
        let mut aborted = Vec::new();
        for shard in &self.shards {
            for (id, session) in shard.lock().iter_mut() {
                match &session.state {
                    State::Open { since, .. } if since.elapsed() > lifetime => {}
                    _ => continue,
                }
                match &session.busy {
                    Some(command) => {
                        command.raise(Code::TransactionExceededLifetimeLimitSeconds);
                        session.after = After::Abort;
                    }
                    None => aborted.push(std::mem::replace(&mut session.state, State::Aborted)),
                }
                overdue.push((*id, session.number));
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
            owner: None,
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
        if let State::Open { joint, .. } = self {
            drop(joint.take());
        }
    }
}

fn used<'s>(
    sessions: &'s mut HashMap<SessionId, Session>,
    id: &SessionId,
    owner: Owner,
    max: usize,
) -> Result<&'s mut Session> {
    if sessions.len() >= max && !sessions.contains_key(id) {
        let message = "Unable to add session to the server because it has reached its limit of sessions; end sessions \
                       that are no longer used, or raise --max-sessions";
        return Err(Error::new(Code::TooManyLogicalSessions, message));
    }
    let session = sessions.entry(*id).or_insert_with(Session::new);
    if owner.is_some() && session.owner.is_some() && session.owner != owner {
        // Who has heard of a session's id must not be able to act in it.
        return Err(Error::new(Code::Unauthorized, "the session belongs to another user"));
    }
    session.owner = session.owner.or(owner);
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
