//! Updates of one document by many clients, done together: whoever comes first does its own and those that came meanwhile
//! in one transaction; everybody gets the answer to their own after the commit.
//!
//! The order of the updates is that of their coming. One that is refused leaves the others as they are. Whoever leads hands
//! over after each commit, so nobody works for others for long.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use espalier_query::Context;
use espalier_store::{Begin, CommitToken, Mode, Namespace, Remembered, Transaction, Update, Updated};
use espalier_value::{Error, Path, Result, ValueRef, key};

use super::events::updated;
use super::{conflicted, layout_to_write};
use crate::layout::{Layout, Written};
use crate::patterned::Shared;
use crate::roles::Roles;
use crate::txn::PatternedTxn;

/// Updates that are done in one transaction.
const TOGETHER: usize = 256;
/// How often one who waits looks whether it has been interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Between two tries while a client's transaction has the document.
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// Updates that wait, by namespace and `_id`.
#[derive(Default)]
pub struct UpdateCombiner {
    queues: Mutex<HashMap<Vec<u8>, Vec<Arc<Waiting>>>>,
}

/// One client's update.
struct Waiting {
    update: Update,
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    Queued,
    /// It is this one's turn to do what is queued.
    Leads,
    /// Somebody else is doing it.
    Taken,
    Done(Outcome),
}

/// What came of one update, and of the commit.
#[derive(Clone)]
enum Outcome {
    Committed(Result<Option<Updated>>, CommitToken),
    /// It has to be done by itself.
    Alone,
    Failed(Error),
}

impl UpdateCombiner {
    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<Arc<Waiting>>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        *self.lock() = state;
        self.changed.notify_one();
    }
}

impl PatternedTxn {
    /// Updates a document together with others who update it now. `None` if it has to be done by itself; the inner is
    /// `None` if there is no such document, or the filter does not let it through.
    pub(crate) fn update_combined(
        &mut self,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Option<Updated>>> {
        if self.begin.mode != Mode::Auto || !can_combine(&*self.below, ns, update)? {
            return Ok(None);
        }
        let mut place = ns.to_string().into_bytes();
        place.push(0);
        place.extend_from_slice(&key::of(id));
        match combined(&self.shared, ns, id, &place, update)? {
            Outcome::Alone => Ok(None),
            Outcome::Failed(error) => Err(error),
            Outcome::Committed(done, token) => {
                self.last = self.last.max(token);
                done.map(Some)
            }
        }
    }
}

/// Whether a collection's layout does updates like this one together, and no other pattern has to do with them.
pub(super) fn can_combine(at: &dyn Transaction, ns: &Namespace, update: &Update) -> Result<bool> {
    let Some(roles) = Roles::of(at, ns)? else { return Ok(false) };
    let Some(layout) = roles.layout.as_ref().filter(|layout| layout.combines(update)) else { return Ok(false) };
    // A projection that fails must take its update with it, and no other.
    if roles.leaving || roles.pre_images || update.projection.is_some() {
        return Ok(false);
    }
    let Some(touched) = update.update.touched_paths() else { return Ok(false) };
    if roles.derived.is_empty() && roles.watchers.is_empty() {
        return Ok(true);
    }
    let along = layout.owned_fields();
    let writes = || touched.iter().map(Path::first).chain(along.iter().copied());
    for derivation in &roles.derived {
        let owns = |path: &Path| derivation.owns().iter().any(|own| own.is_prefix_of(path) || path.is_prefix_of(own));
        if touched.iter().any(owns) || writes().any(|name| derivation.depends().contains(&name)) {
            return Ok(false);
        }
    }
    for watcher in &roles.watchers {
        let Some(theirs) = Roles::of(at, &Namespace::new(ns.db(), watcher))? else { continue };
        let mut reading = theirs.derived.iter().filter(|derivation| derivation.source() == ns.collection());
        if reading.any(|derivation| writes().any(|name| derivation.reads().has(name))) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn combined(shared: &Shared, ns: &Namespace, id: ValueRef<'_>, place: &[u8], update: &Update) -> Result<Outcome> {
    let mine = Arc::new(Waiting { update: update.clone(), state: Mutex::new(State::Queued), changed: Condvar::new() });
    let combiner = &shared.update_combiner;
    let waited = {
        let mut queues = combiner.lock();
        match queues.get_mut(place) {
            Some(queue) => {
                queue.push(mine.clone());
                true
            }
            None => {
                queues.insert(place.to_vec(), vec![mine.clone()]);
                *mine.lock() = State::Leads;
                false
            }
        }
    };
    let mut state = mine.lock();
    loop {
        match &*state {
            State::Done(outcome) => return Ok(outcome.clone()),
            State::Leads => {
                drop(state);
                return lead(shared, ns, id, place, &mine, waited);
            }
            State::Queued => {
                if let Err(interrupted) = update.context.interrupt.check() {
                    drop(state);
                    if leave(combiner, place, &mine) {
                        return Err(interrupted);
                    }
                    // It is too late to leave: it is being done, or this one leads.
                    state = mine.lock();
                    if !matches!(*state, State::Queued) {
                        continue;
                    }
                }
            }
            State::Taken => {}
        }
        state = mine.changed.wait_timeout(state, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Takes an update out of its queue; false if it is not there any more, or leads it.
fn leave(combiner: &UpdateCombiner, place: &[u8], mine: &Arc<Waiting>) -> bool {
    let mut queues = combiner.lock();
    let Some(queue) = queues.get_mut(place) else { return false };
    if !matches!(*mine.lock(), State::Queued) {
        return false;
    }
    let before = queue.len();
    queue.retain(|other| !Arc::ptr_eq(other, mine));
    queue.len() < before
}

/// What one leader has taken; whatever happens, those that wait get an answer, and the next one leads.
struct Lead<'s> {
    combiner: &'s UpdateCombiner,
    place: &'s [u8],
    batch: Vec<Arc<Waiting>>,
    /// Did not get to it: they are queued again.
    give_back: bool,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut queues = self.combiner.lock();
        let Some(queue) = queues.get_mut(self.place) else { return };
        if self.give_back {
            self.batch.iter().for_each(|waiting| *waiting.lock() = State::Queued);
            queue.splice(0..0, self.batch.drain(..));
        }
        for waiting in self.batch.drain(..) {
            // Answered already, unless the leader came to grief.
            if !matches!(*waiting.lock(), State::Done(_)) {
                waiting.set(State::Done(Outcome::Failed(Error::internal("an update done with others was cut off"))));
            }
        }
        match queue.first() {
            Some(next) => next.set(State::Leads),
            None => drop(queues.remove(self.place)),
        }
    }
}

/// `waited`: others came before this one.
fn lead(
    shared: &Shared,
    ns: &Namespace,
    id: ValueRef<'_>,
    place: &[u8],
    mine: &Arc<Waiting>,
    waited: bool,
) -> Result<Outcome> {
    let mut lead = Lead { combiner: &shared.update_combiner, place, batch: Vec::new(), give_back: false };
    let context = &mine.update.context;
    let turn = match shared.locks.lock(ns, id, context) {
        Ok(turn) => turn,
        Err(interrupted) => {
            leave_as_leader(&shared.update_combiner, place, mine);
            return Err(interrupted);
        }
    };
    if waited {
        // Those that have just been answered are about to come again: better with this one than with the next.
        std::thread::yield_now();
    }
    {
        let mut queues = shared.update_combiner.lock();
        if let Some(queue) = queues.get_mut(place) {
            let count = queue.len().min(TOGETHER);
            lead.batch.extend(queue.drain(..count));
        }
    }
    for waiting in lead.batch.iter().filter(|other| !Arc::ptr_eq(other, mine)) {
        *waiting.lock() = State::Taken;
    }
    let updates: Vec<&Update> = lead.batch.iter().map(|waiting| &waiting.update).collect();
    let outcomes = match together(shared, ns, id, &updates, context) {
        Ok(Some((done, token))) => done.into_iter().map(|one| Outcome::Committed(one, token)).collect(),
        Ok(None) => vec![Outcome::Alone; updates.len()],
        Err(error) if context.interrupt.check().is_err() => {
            // That was this client's alone.
            lead.batch.retain(|other| !Arc::ptr_eq(other, mine));
            lead.give_back = true;
            return Err(error);
        }
        Err(error) => vec![Outcome::Failed(error); updates.len()],
    };
    drop(turn);
    let mut own = Outcome::Alone;
    for (waiting, outcome) in lead.batch.iter().zip(outcomes) {
        match Arc::ptr_eq(waiting, mine) {
            true => {
                own = outcome.clone();
                *waiting.lock() = State::Done(outcome);
            }
            false => waiting.set(State::Done(outcome)),
        }
    }
    Ok(own)
}

/// A leader that was interrupted before it began.
fn leave_as_leader(combiner: &UpdateCombiner, place: &[u8], mine: &Arc<Waiting>) {
    if let Some(queue) = combiner.lock().get_mut(place) {
        queue.retain(|other| !Arc::ptr_eq(other, mine));
    }
}

type Together = (Vec<Result<Option<Updated>>>, CommitToken);

/// Does the updates in one transaction, again after a conflict; `None` if they have to be done one by one.
fn together(
    shared: &Shared,
    ns: &Namespace,
    id: ValueRef<'_>,
    updates: &[&Update],
    context: &Arc<Context>,
) -> Result<Option<Together>> {
    let mut pause = Duration::from_micros(20);
    loop {
        context.interrupt.check()?;
        let begin = Begin { mode: Mode::Transaction, want_changes: false, raw: true, context: context.clone() };
        let mut tx = shared.below.begin(begin)?;
        tx.set_silent(true);
        let committed = match attempt(&mut *tx, ns, id, updates) {
            Ok(None) => return Ok(None),
            Ok(Some((done, waits))) => tx.commit().map(|token| (done, waits, token)),
            // Whose it is shows when they are done one by one.
            Err(error) if !conflicted(&error) && context.interrupt.check().is_ok() => return Ok(None),
            Err(error) => Err(error),
        };
        match committed {
            Ok((done, true, token)) => return Ok(Some((done, token))),
            // Nothing has to be on disk for it to be answered.
            Ok((done, false, token)) => return Ok(Some((done, CommitToken { position: 0, stamp: token.stamp }))),
            Err(error) if conflicted(&error) => {}
            Err(error) => return Err(error),
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

type Attempted = (Vec<Result<Option<Updated>>>, bool);

fn attempt(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    id: ValueRef<'_>,
    updates: &[&Update],
) -> Result<Option<Attempted>> {
    let Some((layout, false)) = layout_to_write(tx, ns)? else { return Ok(None) };
    for update in updates {
        if !can_combine(tx, ns, update)? {
            return Ok(None);
        }
    }
    let Some(written) = layout.update_combined(tx, ns, id, updates)? else { return Ok(None) };
    let mut done = Vec::with_capacity(updates.len());
    for (update, written) in updates.iter().zip(written) {
        done.push(match written {
            Ok(Some(written)) => Ok(Some(tell(tx, ns, id, &layout, update, written)?)),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        });
    }
    Ok(Some((done, layout.waits_for_disk())))
}

/// Tells change streams and the session of one update; gives its answer.
fn tell(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    id: ValueRef<'_>,
    layout: &Arc<dyn Layout>,
    update: &Update,
    written: Written,
) -> Result<Updated> {
    if written.modified {
        updated(tx, ns, layout, id, (None, None), &written, &update.context)?;
    }
    let answer = Updated { matched: 1, modified: written.modified.into(), upserted_id: None, image: written.image };
    if let Some(statement) = &update.statement {
        let what = Remembered::Updated(statement.id, answer.clone());
        tx.remember(&statement.session, statement.txn_number, &what);
    }
    Ok(answer)
}
