//! Clients that write the same wait in a queue: whoever comes first carries out its own work and that of all who came
//! meanwhile, and gives everybody the answer to their own. They would only wait for each other otherwise, and rewrite
//! the same document one after the other.
//!
//! Work is taken in the order in which it came. Whoever leads hands over after one round, so nobody works for others for
//! long, and nobody waits for more than the rounds before its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use espalier_query::Context;
use espalier_value::{Error, Result};

/// How often one who waits looks whether it has been interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Work `W` that waits for its answer `R`, by the place that it writes to. A place is there while somebody leads it.
pub struct Queues<W, R> {
    waiting: Mutex<HashMap<Vec<u8>, Queue<W, R>>>,
}

type Queue<W, R> = VecDeque<Arc<Ticket<W, R>>>;

struct Ticket<W, R> {
    work: W,
    state: Mutex<State<R>>,
    changed: Condvar,
}

enum State<R> {
    Waits,
    /// It is this one's turn to work for all.
    Leads,
    Done(Result<R>),
}

/// What became of somebody who came.
pub enum Came<'q, W, R> {
    /// Its work is to be done, together with that of others.
    Leads(Lead<'q, W, R>),
    /// Somebody else did it.
    Done(R),
}

impl<W, R> Default for Queues<W, R> {
    fn default() -> Self {
        Queues { waiting: Mutex::new(HashMap::new()) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W, R> Ticket<W, R> {
    fn set(&self, state: State<R>) {
        *lock(&self.state) = state;
        self.changed.notify_one();
    }
}

impl<W, R> Queues<W, R> {
    /// Leads, if nobody is there; waits for the answer, or to lead, otherwise. `work` is asked for only then.
    pub fn enter(&self, place: Vec<u8>, context: &Context, work: impl FnOnce() -> W) -> Result<Came<'_, W, R>> {
        if self.join(&place, None) {
            return Ok(Came::Leads(self.lead(place, false)));
        }
        let (state, changed) = (Mutex::new(State::Waits), Condvar::new());
        let ticket = Arc::new(Ticket { work: work(), state, changed });
        if self.join(&place, Some(&ticket)) {
            return Ok(Came::Leads(self.lead(place, false)));
        }
        // The more wait here at a time the more are done at once, so they do not wait in each other's way.
        context.waits();
        let mut state = lock(&ticket.state);
        loop {
            match std::mem::replace(&mut *state, State::Waits) {
                State::Done(answer) => return answer.map(Came::Done),
                State::Leads => return Ok(Came::Leads(self.lead(place, true))),
                State::Waits => {}
            }
            state = ticket.changed.wait_timeout(state, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
            if matches!(*state, State::Waits)
                && let Err(interrupted) = context.interrupt.check()
            {
                drop(state);
                if self.leave(&place, &ticket) {
                    return Err(interrupted);
                }
                // It is too late to leave: it is being done, or is to lead.
                state = lock(&ticket.state);
            }
        }
    }

    fn lead(&self, place: Vec<u8>, waited: bool) -> Lead<'_, W, R> {
        Lead { queues: self, place, waited, taken: Vec::new() }
    }

    /// Takes a place in the queue; true if there is none, and this one leads.
    fn join(&self, place: &[u8], ticket: Option<&Arc<Ticket<W, R>>>) -> bool {
        let mut waiting = lock(&self.waiting);
        let Some(queue) = waiting.get_mut(place) else {
            waiting.insert(place.to_vec(), VecDeque::new());
            return true;
        };
        queue.extend(ticket.cloned());
        false
    }

    /// Gives up a place; false if it was taken or handed the lead.
    fn leave(&self, place: &[u8], ticket: &Arc<Ticket<W, R>>) -> bool {
        let mut waiting = lock(&self.waiting);
        let Some(queue) = waiting.get_mut(place) else { return false };
        let before = queue.len();
        queue.retain(|other| !Arc::ptr_eq(other, ticket));
        queue.len() < before
    }
}

/// The turn of one who works for others; when it ends, whatever has happened, the next one has it.
pub struct Lead<'q, W, R> {
    queues: &'q Queues<W, R>,
    place: Vec<u8>,
    /// Others came before this one, and it has taken nobody yet.
    waited: bool,
    /// Those that were taken and have no answer.
    taken: Vec<Arc<Ticket<W, R>>>,
}

impl<W, R> Lead<'_, W, R> {
    /// Takes those that have come, until it works for so many.
    pub fn take(&mut self, most: usize) {
        if std::mem::take(&mut self.waited) {
            // Those that have just been answered are about to come again: better with this one than with the next.
            std::thread::yield_now();
        }
        if let Some(queue) = lock(&self.queues.waiting).get_mut(&self.place) {
            let count = queue.len().min(most.saturating_sub(self.taken.len()));
            self.taken.extend(queue.drain(..count));
        }
    }

    /// The work of those that were taken.
    pub fn others(&self) -> impl Iterator<Item = &W> {
        self.taken.iter().map(|ticket| &ticket.work)
    }

    /// Answers those that were taken, in their order.
    pub fn answer(mut self, answers: impl Iterator<Item = Result<R>>) {
        let taken = std::mem::take(&mut self.taken);
        let mut answers = answers.fuse();
        for ticket in taken {
            let answer = answers.next().unwrap_or_else(|| Err(Error::internal("a write with others has no answer")));
            ticket.set(State::Done(answer));
        }
    }

    /// Those that were taken wait again, before all others.
    pub fn give_back(mut self) {
        let taken = std::mem::take(&mut self.taken);
        if let Some(queue) = lock(&self.queues.waiting).get_mut(&self.place) {
            taken.into_iter().rev().for_each(|ticket| queue.push_front(ticket));
        }
    }
}

impl<W, R> Drop for Lead<'_, W, R> {
    fn drop(&mut self) {
        for ticket in self.taken.drain(..) {
            ticket.set(State::Done(Err(Error::internal("a write done with others was cut off"))));
        }
        let mut waiting = lock(&self.queues.waiting);
        let next = waiting.get_mut(&self.place).and_then(VecDeque::pop_front);
        match next {
            Some(next) => next.set(State::Leads),
            None => drop(waiting.remove(&self.place)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use espalier_value::Code;

    type Numbers = Queues<i32, i32>;

    fn place() -> Vec<u8> {
        b"place".to_vec()
    }

    fn lead(queues: &Numbers) -> Lead<'_, i32, i32> {
        match queues.enter(place(), &Context::default(), || 0).unwrap() {
            Came::Leads(lead) => lead,
            Came::Done(_) => panic!("somebody leads"),
        }
    }

    fn until_waiting(queues: &Numbers, count: usize) {
        while lock(&queues.waiting).get(&place()).map_or(0, VecDeque::len) != count {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_leader_answers_those_who_came_meanwhile_in_their_order() {
        let queues = Numbers::default();
        let mut first = lead(&queues);
        std::thread::scope(|scope| {
            let mut waiting = Vec::new();
            for number in 1..=3 {
                let queues = &queues;
                waiting.push(scope.spawn(move || {
                    match queues.enter(place(), &Context::default(), || number).unwrap() {
                        Came::Done(answer) => answer,
                        // Left over by the first: leads with nobody else.
                        Came::Leads(_) => -number,
                    }
                }));
                until_waiting(queues, number as usize);
            }
            first.take(2);
            assert_eq!(first.others().copied().collect::<Vec<_>>(), [1, 2]);
            let answers: Vec<Result<i32>> = first.others().map(|number| Ok(number * 10)).collect();
            first.answer(answers.into_iter());
            let answers: Vec<i32> = waiting.into_iter().map(|one| one.join().unwrap()).collect();
            assert_eq!(answers, [10, 20, -3]);
        });
        assert!(lock(&queues.waiting).is_empty());
    }

    #[test]
    fn a_leader_that_fails_leaves_nobody_waiting() {
        let queues = Numbers::default();
        let mut first = lead(&queues);
        std::thread::scope(|scope| {
            let queues = &queues;
            let cut = scope.spawn(move || queues.enter(place(), &Context::default(), || 1).map(|_| ()));
            until_waiting(queues, 1);
            first.take(1);
            drop(first);
            assert!(cut.join().unwrap().is_err());
            let mut second = lead(queues);
            let back =
                scope.spawn(move || matches!(queues.enter(place(), &Context::default(), || 2), Ok(Came::Leads(_))));
            until_waiting(queues, 1);
            second.take(1);
            second.give_back();
            assert!(back.join().unwrap());
        });
        assert!(lock(&queues.waiting).is_empty());
    }

    #[test]
    fn one_who_is_interrupted_leaves() {
        let queues = Numbers::default();
        let first = lead(&queues);
        let interrupted = Context::default();
        interrupted.interrupt.raise(Code::Interrupted);
        assert!(queues.enter(place(), &interrupted, || 1).is_err());
        until_waiting(&queues, 0);
        drop(first);
        assert!(lock(&queues.waiting).is_empty());
    }
}
