//! Reading a stream's parts on several threads and having what was made of them in order.
//!
//! What is made of a part (columns for a `$group`, keys and documents for a sort, documents as they are) is made wherever
//! a processor is free; what is done with it is done by one thread, part after part in the order of the stream. So the
//! result is the same to the last bit as without helpers: sums are added up in the same order, `$push` and `$first` see
//! the same sequence, and of several errors the first in the stream counts.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use espalier_value::{Error, Result};

use crate::helpers::Helpers;
use crate::stream::{Parts, Stream};

mod docs;
#[cfg(test)]
mod tests;

pub(crate) use docs::copy;
pub use docs::{Docs, Gathered};

/// Parts that may be done before they are asked for. What is made of one is limited by whoever makes it.
const AHEAD_MAX: usize = 8;

/// What is made of the beginning of a part, and whether there is more of it.
pub struct Made<T> {
    pub made: T,
    pub more: bool,
}

type Make<T> = dyn Fn(&mut dyn Stream) -> Result<Made<T>> + Send + Sync;

/// Gives what was made of each part, in order.
pub struct Gather<T> {
    shared: Arc<Shared<T>>,
    helpers: Arc<dyn Helpers>,
    /// The rest of the part that was given last.
    rest: Option<Box<dyn Stream>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    /// A slot was filled.
    filled: Condvar,
    make: Box<Make<T>>,
}

struct State<T> {
    /// `None` when all have been taken, or nobody wants them any more.
    parts: Option<Box<dyn Parts>>,
    /// From the part that is to be given next on; each is being made or is done.
    slots: VecDeque<Option<Slot<T>>>,
    /// The number of the first slot.
    first: u64,
    helpers: usize,
}

/// What was made of a part, and the part if there is more of it.
type Slot<T> = Result<(T, Option<Box<dyn Stream>>)>;

impl<T: Send + 'static> Gather<T> {
    pub fn new(
        parts: Box<dyn Parts>,
        helpers: Arc<dyn Helpers>,
        make: impl Fn(&mut dyn Stream) -> Result<Made<T>> + Send + Sync + 'static,
    ) -> Gather<T> {
        let state = State { parts: Some(parts), slots: VecDeque::new(), first: 0, helpers: 0 };
        let shared = Shared { state: Mutex::new(state), filled: Condvar::new(), make: Box::new(make) };
        Gather { shared: Arc::new(shared), helpers, rest: None }
    }

    /// What was made of the next part, or of more of the last one.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<T>> {
        if let Some(part) = self.rest.take() {
            return self.give(self.shared.make(part)).map(Some);
        }
        loop {
            self.ask_for_help();
            let mut state = self.shared.lock();
            match state.slots.front() {
                Some(Some(_)) => {
                    state.first += 1;
                    if let Some(Some(slot)) = state.slots.pop_front() {
                        drop(state);
                        return self.give(slot).map(Some);
                    }
                }
                None if state.parts.is_none() => return Ok(None),
                // Somebody is at it; meanwhile there may be other parts to do.
                _ => match self.shared.take(&mut state) {
                    Some((number, part)) => {
                        drop(state);
                        self.shared.fill(number, part);
                    }
                    None if state.slots.is_empty() => return Ok(None),
                    None => {
                        let waits = |state: &mut State<T>| matches!(state.slots.front(), Some(None));
                        drop(self.shared.filled.wait_while(state, waits));
                    }
                },
            }
        }
    }

    fn give(&mut self, slot: Slot<T>) -> Result<T> {
        let (made, rest) = slot?;
        self.rest = rest;
        Ok(made)
    }

    /// Another thread, if one is free and has something to do.
    fn ask_for_help(&self) {
        let mut state = self.shared.lock();
        if state.helpers > 0 || state.parts.is_none() || state.slots.len() > AHEAD_MAX / 2 || !self.helpers.has_room() {
            return;
        }
        state.helpers += 1;
        drop(state);
        let (shared, helpers) = (Arc::clone(&self.shared), Arc::clone(&self.helpers));
        let leave = Leaving(Arc::clone(&self.shared));
        // If there is nobody, the task is dropped and with it what takes the number back.
        Arc::clone(&self.helpers).help(Box::new(move || {
            shared.help(&*helpers);
            drop(leave);
        }));
    }
}

/// Takes a helper off the list, however it ends.
struct Leaving<T>(Arc<Shared<T>>);

impl<T> Drop for Leaving<T> {
    fn drop(&mut self) {
        self.0.lock().helpers -= 1;
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part that nobody has taken, and its number; `None` if there is none or enough has been done ahead.
    fn take(&self, state: &mut State<T>) -> Option<(u64, Box<dyn Stream>)> {
        if state.slots.len() >= AHEAD_MAX {
            return None;
        }
        let next = state.parts.as_mut()?.next().transpose();
        let number = state.first + state.slots.len() as u64;
        match next {
            Some(Ok(part)) => {
                state.slots.push_back(None);
                return Some((number, part));
            }
            // It belongs behind the parts that were taken before.
            Some(Err(error)) => state.slots.push_back(Some(Err(error))),
            None => {}
        }
        state.parts = None;
        None
    }

    fn make(&self, mut part: Box<dyn Stream>) -> Slot<T> {
        let made = (self.make)(&mut *part)?;
        Ok((made.made, made.more.then_some(part)))
    }

    /// Makes of a part what is to be made and puts it where it belongs.
    fn fill(&self, number: u64, part: Box<dyn Stream>) {
        // Nobody else would ever fill the slot, so a panic has to.
        let slot = catch_unwind(AssertUnwindSafe(|| self.make(part)))
            .unwrap_or_else(|_| Err(Error::internal("a part of the scan could not be read")));
        let mut state = self.lock();
        let at = number.checked_sub(state.first).and_then(|at| usize::try_from(at).ok());
        if let Some(place) = at.and_then(|at| state.slots.get_mut(at)) {
            *place = Some(slot);
        }
        drop(state);
        self.filled.notify_all();
    }

    /// What a helper does: parts, as long as there are some to do and processors to spare.
    fn help(&self, helpers: &dyn Helpers) {
        while !helpers.is_crowded() {
            let mut state = self.lock();
            let taken = self.take(&mut state);
            drop(state);
            match taken {
                Some((number, part)) => self.fill(number, part),
                None => return,
            }
        }
    }
}

impl<T> Drop for Gather<T> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let parts = state.parts.take();
        let slots = std::mem::take(&mut state.slots);
        drop(state);
        drop((parts, slots));
    }
}
