//! Inserts of single documents that all write the same stored document, as readings of one bucket do: whoever is first
//! inserts for all that come meanwhile, in one transaction. They would only wait for each other otherwise, and rewrite
//! the same document one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use espalier_store::{CommitToken, Insert, Inserted, Mode, Namespace, Remembered};
use espalier_value::{DocBuf, Error, RawDoc, Result, key};

use super::Turn;
use crate::roles::Roles;
use crate::txn::PatternedTxn;

/// Most documents that one inserts for others at a time.
const TOGETHER: usize = 64;

/// Those who wait, by what they write. An entry is there as long as somebody inserts for it.
#[derive(Default)]
pub struct Combiner {
    waiting: Mutex<HashMap<Vec<u8>, Vec<Arc<Ticket>>>>,
}

/// One insert that waits for another to carry it out, or for its turn to carry out those of others.
struct Ticket {
    doc: DocBuf,
    how: Insert,
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    Waiting,
    /// It is this one's turn to insert for all.
    Leads,
    Done(Result<(Inserted, CommitToken)>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ticket {
    fn set(&self, state: State) {
        *lock(&self.state) = state;
        self.changed.notify_one();
    }

    /// Waits until somebody has carried it out; `None` if it is to do so itself.
    fn wait(&self) -> Option<Result<(Inserted, CommitToken)>> {
        let mut state = lock(&self.state);
        loop {
            match std::mem::replace(&mut *state, State::Waiting) {
                State::Waiting => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                State::Leads => return None,
                State::Done(result) => return Some(result),
            }
        }
    }
}

impl Combiner {
    /// Takes a place; true if it is the first and has to insert for all.
    fn join(&self, key: &[u8], ticket: &Arc<Ticket>) -> bool {
        let mut waiting = lock(&self.waiting);
        match waiting.get_mut(key) {
            Some(queue) => {
                queue.push(ticket.clone());
                false
            }
            None => {
                waiting.insert(key.to_vec(), Vec::new());
                true
            }
        }
    }

    /// Those that wait now.
    fn take(&self, key: &[u8]) -> Vec<Arc<Ticket>> {
        let mut waiting = lock(&self.waiting);
        let Some(queue) = waiting.get_mut(key) else { return Vec::new() };
        let count = queue.len().min(TOGETHER - 1);
        queue.drain(..count).collect()
    }
}

/// The turn of one who inserts for others; given up, the next one has it, whatever has happened.
struct Lead<'c> {
    combiner: &'c Combiner,
    key: Vec<u8>,
    /// Those that were taken and are not done.
    taken: Vec<Arc<Ticket>>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        for ticket in self.taken.drain(..) {
            ticket.set(State::Done(Err(Error::internal("an insert that others waited for was cut off"))));
        }
        let mut waiting = lock(&self.combiner.waiting);
        let next = waiting.get_mut(&self.key).and_then(|queue| (!queue.is_empty()).then(|| queue.remove(0)));
        match next {
            Some(next) => next.set(State::Leads),
            None => drop(waiting.remove(&self.key)),
        }
    }
}

impl PatternedTxn {
    /// Inserts one document together with those of others that write the same; `None` if there is nothing to share.
    pub(super) fn insert_combined(
        &mut self,
        ns: &Namespace,
        doc: RawDoc<'_>,
        how: &Insert,
    ) -> Result<Option<Inserted>> {
        if self.begin.mode == Mode::Transaction {
            return Ok(None);
        }
        let layout = Roles::of(&*self.now(&how.context)?, ns)?.and_then(|roles| roles.layout.clone());
        let Some(turn) = layout.and_then(|layout| layout.turn(ns, doc)) else { return Ok(None) };
        let shared = self.shared.clone();
        let key = key_of(&turn, how);
        let ticket = Arc::new(Ticket {
            doc: DocBuf::from_raw(doc),
            how: how.clone(),
            state: Mutex::new(State::Waiting),
            changed: Condvar::new(),
        });
        if !shared.combiner.join(&key, &ticket)
            && let Some(result) = ticket.wait()
        {
            let (inserted, token) = result?;
            self.last = self.last.max(token);
            return Ok(Some(inserted));
        }
        let others = shared.combiner.take(&key);
        let mut lead = Lead { combiner: &shared.combiner, key, taken: others };
        let mut all = vec![ticket.clone()];
        all.extend(lead.taken.iter().cloned());
        let results = self.insert_tickets(ns, &all);
        let token = self.last;
        let mut results = results.into_iter();
        let own = results.next().unwrap_or_else(|| Err(Error::internal("an insert without a result")));
        for (other, result) in lead.taken.drain(..).zip(results) {
            other.set(State::Done(result.map(|inserted| (inserted, token))));
        }
        drop(lead);
        own.map(Some)
    }

    /// What came of each of them.
    fn insert_tickets(&mut self, ns: &Namespace, tickets: &[Arc<Ticket>]) -> Vec<Result<Inserted>> {
        match self.insert_at_once(ns, tickets) {
            Ok(results) => results.into_iter().map(Ok).collect(),
            // It may be the error of one of them, or of this command alone.
            Err(_) if tickets.len() > 1 => tickets
                .iter()
                .map(|ticket| {
                    let one = self.insert_at_once(ns, std::slice::from_ref(ticket))?;
                    Ok(one.into_iter().next().unwrap_or_default())
                })
                .collect(),
            Err(error) => vec![Err(error)],
        }
    }

    fn insert_at_once(&mut self, ns: &Namespace, tickets: &[Arc<Ticket>]) -> Result<Vec<Inserted>> {
        let Some(first) = tickets.first() else { return Ok(Vec::new()) };
        let docs: Vec<RawDoc<'_>> = tickets.iter().map(|ticket| ticket.doc.as_raw()).collect();
        let below = Insert { ordered: false, statements: None, ..first.how.clone() };
        let turns = self.turns(ns, &docs, &below)?;
        self.atomically(ns, &below.context, turns, |write| {
            let mut done = write.insert(ns, &docs, &below)?;
            let mut results = Vec::with_capacity(tickets.len());
            for (at, ticket) in tickets.iter().enumerate() {
                let failed = done.errors.iter().position(|(failed, _)| *failed == at);
                let Some(failed) = failed else {
                    if let Some(statements) = &ticket.how.statements {
                        let what = Remembered::Inserted(statements.ids.iter().take(1).copied().collect());
                        write.tx.remember(&statements.session, statements.txn_number, &what);
                    }
                    results.push(Inserted { inserted: 1, ..Inserted::default() });
                    continue;
                };
                let (_, error) = done.errors.swap_remove(failed);
                results.push(Inserted { inserted: 0, errors: vec![(0, error)] });
            }
            Ok(results)
        })
    }
}

/// What is inserted together writes the same, and is checked alike.
fn key_of(turn: &Turn, how: &Insert) -> Vec<u8> {
    let mut bytes = turn.0.to_string().into_bytes();
    bytes.push(how.bypass_validation.into());
    bytes.extend_from_slice(&key::of(turn.1.or_null()));
    bytes
}
