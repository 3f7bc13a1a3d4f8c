//! Updates of one document by many clients, done together: whoever comes first does its own and those that came meanwhile
//! in one transaction; everybody gets the answer to their own after the commit.
//!
//! The order of the updates is that of their coming. One that is refused leaves the others as they are.

use std::sync::Arc;
use std::time::Duration;

use espalier_query::Context;
use espalier_store::{Begin, CommitToken, Mode, Namespace, Remembered, Transaction, Update, Updated};
use espalier_value::{Error, Path, Result, ValueRef, key};

use super::events::updated;
use super::queue::{Came, Queues};
use super::{conflicted, layout_to_write};
use crate::layout::{Layout, Written};
use crate::patterned::Shared;
use crate::roles::Roles;
use crate::txn::PatternedTxn;

/// Updates that are done in one transaction.
const TOGETHER: usize = 256;
/// Between two tries while a client's transaction has the document.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// Updates that wait, by namespace and `_id`.
pub type UpdateCombiner = Queues<Update, Outcome>;

/// What came of one update that was done with others.
pub enum Outcome {
    Committed(Result<Option<Updated>>, CommitToken),
    /// It has to be done by itself.
    Alone,
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
        match combined(&self.shared, ns, id, place, update)? {
            Outcome::Alone => Ok(None),
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

fn combined(shared: &Shared, ns: &Namespace, id: ValueRef<'_>, place: Vec<u8>, update: &Update) -> Result<Outcome> {
    let context = &update.context;
    let mut lead = match shared.update_combiner.enter(place, context, || update.clone())? {
        Came::Done(outcome) => return Ok(outcome),
        Came::Leads(lead) => lead,
    };
    let turn = shared.locks.lock(ns, id, context)?;
    lead.take(TOGETHER - 1);
    let updates: Vec<&Update> = std::iter::once(update).chain(lead.others()).collect();
    let done = together(shared, ns, id, &updates, context);
    drop(turn);
    match done {
        Ok(Some((done, token))) => {
            let mut done = done.into_iter().map(|one| Ok(Outcome::Committed(one, token)));
            let own = done.next().unwrap_or_else(|| Err(Error::internal("an update without an answer")));
            lead.answer(done);
            own
        }
        Ok(None) => {
            lead.answer(std::iter::repeat_with(|| Ok(Outcome::Alone)));
            Ok(Outcome::Alone)
        }
        Err(error) => {
            match context.interrupt.check() {
                // That was this client's alone.
                Err(_) => lead.give_back(),
                Ok(()) => lead.answer(std::iter::repeat_with(|| Err(error.clone()))),
            }
            Err(error)
        }
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
    let mut pause = Duration::ZERO;
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
        if pause.is_zero() {
            // As a rule it was somebody's single write, which is over by now.
            std::thread::yield_now();
        } else {
            std::thread::sleep(pause);
        }
        pause = (pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
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
