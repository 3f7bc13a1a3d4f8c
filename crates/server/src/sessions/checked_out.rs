//! A session that a command has for itself, and the rules of its numbers: which is too old, which goes on, which is new.

use std::sync::Arc;
use std::time::{Duration, Instant};

use espalier_store::SessionId;
use espalier_value::{Code, Error, Result};

use super::{After, Joint, Lsid, Session, Shard, State, uuid_text};

/// Given back when dropped.
pub struct CheckedOut<'s> {
    shard: &'s Shard,
    key: SessionId,
    lsid: Lsid,
    since: Instant,
}

/// Whether a retryable write may have been carried out before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Its number is new. The flag says that the write before it may have left statements beyond the first.
    First {
        many: bool,
    },
    Again,
}

/// A transaction that is to end.
pub enum Ending {
    Open(Arc<Joint>),
    /// It has committed before.
    Committed,
}

impl<'s> CheckedOut<'s> {
    pub(super) fn new(shard: &'s Shard, key: SessionId, lsid: Lsid) -> CheckedOut<'s> {
        CheckedOut { shard, key, lsid, since: Instant::now() }
    }

    /// What the store calls it.
    pub fn key(&self) -> &SessionId {
        &self.key
    }

    pub fn lsid(&self) -> &Lsid {
        &self.lsid
    }

    fn with<T>(&self, change: impl FnOnce(&mut Session) -> T) -> T {
        let mut sessions = self.shard.lock();
        change(sessions.entry(self.key).or_insert_with(Session::new))
    }

    /// Begins, or begins again, the retryable write of this number. `many` says that it has more than one statement.
    pub fn retryable(&self, number: i64, many: bool) -> Result<Seen> {
        let (seen, old) = self.with(|session| {
            if number < session.number {
                let message = format!(
                    "Retryable write with txnNumber {number} is prohibited on session {} because a newer {} with \
                     txnNumber {} has already started on this session.",
                    uuid_text(&self.lsid.id),
                    session.state.kind(),
                    session.number
                );
                return Err(Error::new(Code::TransactionTooOld, message));
            }
            if number > session.number {
                let before = std::mem::replace(&mut session.many, many);
                session.number = number;
                let old = std::mem::replace(&mut session.state, State::Retryable);
                return Ok((Seen::First { many: before }, Some(old)));
            }
            session.many |= many;
            match session.state {
                State::Fresh | State::Retryable => {
                    session.state = State::Retryable;
                    Ok((Seen::Again, None))
                }
                State::Open { .. } | State::Committed | State::Aborted => Err(Error::new(
                    Code::IncompleteTransactionHistory,
                    "Cannot retry a retryable write that has been converted into a transaction",
                )),
            }
        })?;
        // A transaction that the client left behind.
        old.into_iter().for_each(State::abort);
        Ok(seen)
    }

    /// Starts the transaction of this number; one that was left open is aborted.
    pub fn start(&self, number: i64, begin: impl FnOnce() -> Result<Joint>) -> Result<Arc<Joint>> {
        let old = self.with(|session| {
            self.check_not_old(session, number)?;
            if number == session.number {
                return Err(Error::new(
                    Code::ConflictingOperationInProgress,
                    "Only servers in a sharded cluster can start a new transaction at the active transaction number",
                ));
            }
            session.number = number;
            Ok(std::mem::replace(&mut session.state, State::Aborted))
        })?;
        old.abort();
        let joint = Arc::new(begin()?);
        self.with(|session| {
            session.state = State::Open { joint: Arc::clone(&joint), since: Instant::now(), active: Duration::ZERO }
        });
        Ok(joint)
    }

    /// Goes on with the transaction of this number.
    pub fn resume(&self, number: i64) -> Result<Arc<Joint>> {
        match self.ending(number)? {
            Ending::Open(joint) => Ok(joint),
            Ending::Committed => Err(committed(number)),
        }
    }

    /// As [`CheckedOut::resume`], to commit or abort it.
    pub fn ending(&self, number: i64) -> Result<Ending> {
        self.with(|session| {
            self.check_not_old(session, number)?;
            match &session.state {
                State::Open { joint, .. } if number == session.number => Ok(Ending::Open(Arc::clone(joint))),
                State::Committed if number == session.number => Ok(Ending::Committed),
                State::Aborted if number == session.number => Err(aborted(number)),
                _ => {
                    let message = format!(
                        "Given transaction number {number} does not match any in-progress transactions. The active \
                         transaction number is {}",
                        session.number
                    );
                    Err(Error::new(Code::NoSuchTransaction, message))
                }
            }
        })
    }

    fn check_not_old(&self, session: &Session, number: i64) -> Result<()> {
        if number >= session.number {
            return Ok(());
        }
        let message = format!(
            "Cannot start transaction with {{ txnNumber: {number} }} on session {} because a newer {} with txnNumber {} \
             has already started on this session.",
            uuid_text(&self.lsid.id),
            session.state.kind(),
            session.number
        );
        Err(Error::new(Code::TransactionTooOld, message))
    }

    /// The open transaction has committed. Says how long it was open.
    pub fn committed(&self) -> Duration {
        let old = self.with(|session| std::mem::replace(&mut session.state, State::Committed));
        match old {
            State::Open { since, .. } => since.elapsed(),
            _ => Duration::ZERO,
        }
    }

    /// Aborts the transaction if it is open.
    pub fn abort(&self) {
        let old = self.with(|session| match session.state {
            State::Open { .. } => Some(std::mem::replace(&mut session.state, State::Aborted)),
            _ => None,
        });
        old.into_iter().for_each(State::abort);
    }
}

impl Drop for CheckedOut<'_> {
    fn drop(&mut self) {
        let mut sessions = self.shard.lock();
        let mut old = None;
        if let Some(session) = sessions.get_mut(&self.key) {
            session.busy = None;
            if let State::Open { active, .. } = &mut session.state {
                *active += self.since.elapsed();
            }
            let after = std::mem::replace(&mut session.after, After::Nothing);
            if after != After::Nothing && matches!(session.state, State::Open { .. }) {
                old = Some(std::mem::replace(&mut session.state, State::Aborted));
            }
            if after == After::End {
                // What it wrote is forgotten when it would have expired.
                session.last_used = Instant::now();
            }
        }
        drop(sessions);
        self.shard.returned.notify_all();
        old.into_iter().for_each(State::abort);
    }
}

impl State {
    fn kind(&self) -> &'static str {
        match self {
            State::Fresh | State::Retryable => "retryable write",
            State::Open { .. } | State::Committed | State::Aborted => "transaction",
        }
    }
}

pub fn aborted(number: i64) -> Error {
    Error::new(Code::NoSuchTransaction, format!("Transaction with {{ txnNumber: {number} }} has been aborted."))
}

fn committed(number: i64) -> Error {
    Error::new(Code::TransactionCommitted, format!("Transaction with {{ txnNumber: {number} }} has been committed."))
}
