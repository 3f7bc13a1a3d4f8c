//! Logical sessions: when they were last heard of, and the answer to the last retryable write of each, so that a write which
//! is sent again after a lost answer is not carried out again.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use espalier_value::{Code, Error, Result};

use crate::generic::SessionId;

const SHARDS: usize = 16;
/// Bytes of answers kept in one shard; beyond that the longest unused are forgotten.
const REPLY_BYTES_MAX: usize = 8 * 1024 * 1024;

pub struct Sessions {
    shards: [Shard; SHARDS],
    max_per_shard: usize,
    timeout: Duration,
}

#[derive(Default)]
struct Shard {
    state: Mutex<State>,
    /// A retryable write has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, Session>,
    reply_bytes: usize,
}

struct Session {
    last_used: Instant,
    txn_number: i64,
    write: Write,
    reply: Vec<u8>,
}

/// How far the write of the last transaction number got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    /// None yet, or it failed as a whole.
    None,
    Running,
    Done,
    /// Done, but its answer is no longer known.
    Forgotten,
}

/// What to do with a retryable write.
pub enum Retry<'s> {
    /// Carry it out, and say what came of it.
    First(Attempt<'s>),
    /// It was carried out before: these are the fields of its answer.
    Again(Vec<u8>),
}

/// A retryable write that is being carried out. Dropped without [`Attempt::done`], it has failed as a whole.
pub struct Attempt<'s> {
    shard: &'s Shard,
    id: SessionId,
    txn_number: i64,
    reply: Option<Vec<u8>>,
}

impl Sessions {
    pub fn new(max: usize, timeout: Duration) -> Sessions {
        Sessions { shards: Default::default(), max_per_shard: max.div_ceil(SHARDS), timeout }
    }

    fn shard(&self, id: &SessionId) -> &Shard {
        let mixed = id.iter().fold(0u8, |mix, byte| mix.rotate_left(3) ^ byte);
        &self.shards[usize::from(mixed) % SHARDS]
    }

    /// Notes that a session is in use, and begins it if it is new.
    pub fn touch(&self, id: &SessionId) -> Result<()> {
        self.shard(id).lock().session(id, self.max_per_shard).map(|_| ())
    }

    pub fn retryable_write(&self, id: &SessionId, txn_number: i64) -> Result<Retry<'_>> {
        let shard = self.shard(id);
        let mut state = shard.lock();
        loop {
            let session = state.session(id, self.max_per_shard)?;
            if txn_number < session.txn_number {
                let message = format!(
                    "Retryable write with txnNumber {txn_number} is prohibited on session {} because a newer \
                     retryable write with txnNumber {} has already started on this session.",
                    uuid_text(id),
                    session.txn_number
                );
                return Err(Error::new(Code::TransactionTooOld, message));
            }
            if txn_number > session.txn_number {
                let freed = std::mem::take(&mut session.reply).len();
                (session.txn_number, session.write) = (txn_number, Write::None);
                state.reply_bytes -= freed;
                continue;
            }
            match session.write {
                Write::None => {
                    session.write = Write::Running;
                    return Ok(Retry::First(Attempt { shard, id: *id, txn_number, reply: None }));
                }
                Write::Done => return Ok(Retry::Again(session.reply.clone())),
                Write::Forgotten => {
                    let message = "The answer to this retryable write is no longer known; it was carried out";
                    return Err(Error::new(Code::IncompleteTransactionHistory, message));
                }
                // The first attempt still runs: its answer is this one's, too.
                Write::Running => state = shard.ended.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub fn end(&self, id: &SessionId) {
        let mut state = self.shard(id).lock();
        if state.sessions.get(id).is_some_and(|session| session.write != Write::Running)
            && let Some(session) = state.sessions.remove(id)
        {
            state.reply_bytes -= session.reply.len();
        }
    }

    pub fn ids(&self) -> Vec<SessionId> {
        self.shards.iter().flat_map(|shard| shard.lock().sessions.keys().copied().collect::<Vec<_>>()).collect()
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().sessions.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the sessions that nobody has used for long.
    pub fn expire(&self) {
        for shard in &self.shards {
            let mut state = shard.lock();
            let mut freed = 0;
            state.sessions.retain(|_, session| {
                let keep = session.write == Write::Running || session.last_used.elapsed() < self.timeout;
                freed += if keep { 0 } else { session.reply.len() };
                keep
            });
            state.reply_bytes -= freed;
        }
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn session(&mut self, id: &SessionId, max: usize) -> Result<&mut Session> {
        if self.sessions.len() >= max && !self.sessions.contains_key(id) {
            let message = "Unable to add session to the server because it has reached its limit of sessions; \
                           end sessions that are no longer used, or raise --max-sessions";
            return Err(Error::new(Code::TooManyLogicalSessions, message));
        }
        let new = || Session { last_used: Instant::now(), txn_number: -1, write: Write::None, reply: Vec::new() };
        let session = self.sessions.entry(*id).or_insert_with(new);
        session.last_used = Instant::now();
        Ok(session)
    }

    /// Forgets old answers until they fit.
    fn trim(&mut self) {
        while self.reply_bytes > REPLY_BYTES_MAX {
            let oldest = self
                .sessions
                .values_mut()
                .filter(|session| session.write == Write::Done)
                .min_by_key(|session| session.last_used);
            let Some(session) = oldest else { return };
            session.write = Write::Forgotten;
            self.reply_bytes -= std::mem::take(&mut session.reply).len();
        }
    }
}

impl Attempt<'_> {
    /// The write was carried out, as these reply fields say.
    pub fn done(mut self, reply: &[u8]) {
        self.reply = Some(reply.to_vec());
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut state = self.shard.lock();
        let mut added = 0;
        if let Some(session) = state.sessions.get_mut(&self.id)
            && session.txn_number == self.txn_number
        {
            session.write = if self.reply.is_some() { Write::Done } else { Write::None };
            session.reply = self.reply.take().unwrap_or_default();
            added = session.reply.len();
        }
        state.reply_bytes += added;
        state.trim();
        drop(state);
        self.shard.ended.notify_all();
    }
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn first(retry: Result<Retry<'_>>) -> Attempt<'_> {
        match retry.unwrap() {
            Retry::First(attempt) => attempt,
            Retry::Again(_) => panic!("carried out before"),
        }
    }

    fn again(retry: Result<Retry<'_>>) -> Vec<u8> {
        match retry.unwrap() {
            Retry::First(_) => panic!("not carried out before"),
            Retry::Again(reply) => reply,
        }
    }

    #[test]
    fn a_write_sent_again_gets_the_first_answer() {
        let sessions = Sessions::new(100, Duration::from_secs(60));
        let id = [1; 16];
        first(sessions.retryable_write(&id, 1)).done(b"one");
        assert_eq!(again(sessions.retryable_write(&id, 1)), b"one");
        drop(first(sessions.retryable_write(&id, 2)));
        first(sessions.retryable_write(&id, 2)).done(b"two");
        assert_eq!(again(sessions.retryable_write(&id, 2)), b"two");
        let error = sessions.retryable_write(&id, 1).err().unwrap();
        assert_eq!(error.code(), Code::TransactionTooOld);
    }

    #[test]
    fn a_second_attempt_waits_for_the_first() {
        let sessions = Sessions::new(100, Duration::from_secs(60));
        let id = [1; 16];
        let attempt = first(sessions.retryable_write(&id, 1));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| again(sessions.retryable_write(&id, 1)));
            std::thread::sleep(Duration::from_millis(20));
            attempt.done(b"one");
            assert_eq!(second.join().unwrap(), b"one");
        });
    }

    #[test]
    fn sessions_and_answers_are_bounded() {
        let sessions = Sessions::new(SHARDS, Duration::ZERO);
        let ids: Vec<SessionId> = (0..200u8).map(|i| [i; 16]).collect();
        let refused = ids.iter().filter(|id| sessions.touch(id).is_err()).count();
        assert!(refused >= 200 - SHARDS);
        sessions.expire();
        assert!(sessions.is_empty());
        let large = vec![0; REPLY_BYTES_MAX + 1];
        first(sessions.retryable_write(&[1; 16], 1)).done(&large);
        let error = sessions.retryable_write(&[1; 16], 1).err().unwrap();
        assert_eq!(error.code(), Code::IncompleteTransactionHistory);
        sessions.end(&[1; 16]);
        assert!(sessions.is_empty());
    }

    #[test]
    fn uuids_are_written_in_groups() {
        let id = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        assert_eq!(uuid_text(&id), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
