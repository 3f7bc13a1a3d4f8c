//! Bringing the documents of a collection into a layout or back to plain ones, in the background of other clients' work,
//! a few documents a transaction.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use espalier_query::Context;
use espalier_store::{Mode, Namespace};
use espalier_value::{Code, Error, Result, Value};

use super::{Job, begin, own_context};
use crate::declare::{self, Direction, Step};
use crate::derive::{delayed, worker};
use crate::layout::{Layout, Move};
use crate::pace::{Slice, Together};
use crate::patterned::Shared;
use crate::repair;
use crate::roles::Roles;
use crate::schedule;
use crate::write::conflicted;

/// Documents that go together, where a layout takes more than one at a time.
const TOGETHER: usize = 500;
/// How long it waits when somebody was in the way.
const AFTER_CONFLICT: Duration = Duration::from_micros(500);

/// Migrates to the end: that of the declaration, or, if it cannot be reached or was not wanted any more, that of the way
/// back; then the error says why.
pub(super) fn run(shared: &Arc<Shared>, job: &Job) -> Result<()> {
    let context = own_context();
    let mut outcome = Ok(());
    loop {
        let error = match migrate_all(shared, job, &context) {
            Ok(None) => return outcome,
            Ok(Some(direction)) => {
                job.go(direction);
                continue;
            }
            Err(error) if error.code() == Code::InterruptedAtShutdown => return Err(error),
            Err(error) => error,
        };
        let killed = job.killed.swap(false, Ordering::Relaxed);
        if outcome.is_err() && !killed {
            // What can neither go on nor back stays on its way into the layout, which reads and writes can cope with, and
            // is tried again at the next start.
            if job.direction() == Direction::Out {
                turn_back(shared, job, &context)?;
            }
            return Err(error);
        }
        match turn_back(shared, job, &context) {
            Ok(true) => outcome = Err(error),
            Ok(false) => return Err(error),
            // There is no way back any more: it goes on.
            Err(_) if killed => {}
            Err(error) => return Err(error),
        }
    }
}

/// One migration; gives the direction of the one that follows it.
fn migrate_all(shared: &Arc<Shared>, job: &Job, context: &Arc<Context>) -> Result<Option<Direction>> {
    // Writes that began before the declaration do not know of it yet.
    shared.below.settle(&job.ns, context)?;
    let mut tx = begin(shared, Mode::Auto, context)?;
    let Some(info) = tx.collection(&job.ns)? else { return Ok(None) };
    tx.set_options(&job.ns, &declare::settled(&info.options))?;
    shared.below.wait_durable(tx.commit()?)?;
    if job.direction() == Direction::Out {
        let mut tx = begin(shared, Mode::Auto, context)?;
        if let Some(layout) = Roles::of(&*tx, &job.ns)?.and_then(|roles| roles.layout.clone()) {
            layout.leaving(&mut *tx, &job.ns)?;
        }
        tx.commit()?;
    }
    if job.direction() == Direction::Fill {
        return fill(shared, job, context);
    }
    loop {
        // Documents that change hands during a pass are met in the next; the last pass finds nothing.
        while pass(shared, job, context)? > 0 {}
        if !leaves_more(shared, job, context)? {
            break;
        }
    }
    finish(shared, job, context)
}

/// Whether something has come that is to be folded back, too, and was not ready for it.
fn leaves_more(shared: &Arc<Shared>, job: &Job, context: &Arc<Context>) -> Result<bool> {
    if job.direction() != Direction::Out {
        return Ok(false);
    }
    let mut tx = begin(shared, Mode::Auto, context)?;
    let Some(layout) = Roles::of(&*tx, &job.ns)?.and_then(|roles| roles.layout.clone()) else { return Ok(false) };
    let more = layout.leaves_more(&mut *tx, &job.ns)?;
    tx.commit()?;
    Ok(more)
}

/// What cannot be folded back keeps the pattern, and what was folded back goes in again; what cannot be migrated, or is not
/// to be, becomes plain again. False if there is nothing to do on the way back.
fn turn_back(shared: &Arc<Shared>, job: &Job, context: &Arc<Context>) -> Result<bool> {
    let mut tx = begin(shared, Mode::Auto, context)?;
    let Some(info) = tx.collection(&job.ns)? else { return Ok(false) };
    let back = match job.direction() {
        Direction::In => Direction::Out,
        Direction::Out => Direction::In,
        Direction::Fill => {
            // What cannot have the fields keeps the collection from having the patterns. Those of the patterns before
            // are as they say again; others stay as they are, and are anybody's.
            let Some((options, refill)) = declare::taken_back(&info.options, job.ns.collection())? else {
                return Err(Error::new(Code::Interrupted, "the patterns that were there before are being filled in"));
            };
            tx.set_options(&job.ns, &options)?;
            shared.below.wait_durable(tx.commit()?)?;
            job.go(Direction::Fill);
            return Ok(refill);
        }
    };
    if back == Direction::In
        && let Some(layout) = Roles::of(&*tx, &job.ns)?.and_then(|roles| roles.layout.clone())
    {
        if layout.stays(&mut *tx, &job.ns)? {
            tx.set_options(&job.ns, &declare::after(&info.options, job.ns.collection(), Direction::In).0)?;
            shared.below.wait_durable(tx.commit()?)?;
            return Ok(false);
        }
        // Of what lies beside the collection some may be gone already.
        layout.prepare(&mut *tx, &job.ns)?;
    }
    tx.set_options(&job.ns, &declare::turned_back(&info.options, back))?;
    let token = tx.commit()?;
    shared.below.wait_durable(token)?;
    job.go(back);
    Ok(true)
}

/// Migrates what is not migrated yet; returns how many there were.
fn pass(shared: &Arc<Shared>, job: &Job, context: &Arc<Context>) -> Result<u64> {
    let at = begin(shared, Mode::Auto, context)?;
    let Some(layout) = Roles::of(&*at, &job.ns)?.and_then(|roles| roles.layout.clone()) else { return Ok(0) };
    let out = job.direction() == Direction::Out;
    if job.total.load(Ordering::Relaxed) == 0 {
        job.total.store(layout.left_count(&*at, &job.ns, out, context)?, Ordering::Relaxed);
    }
    let mut cursor = layout.left(&*at, &job.ns, out, context)?;
    let (mut found, mut slice, mut together) = (0, Slice::begin(), Together::new(1..=TOGETHER));
    while cursor.advance()? {
        found += 1;
        let id = Value::own(crate::bson::id_of(cursor.doc()));
        migrate(shared, job, context, &id, &mut together)?;
        job.done.fetch_add(1, Ordering::Relaxed);
        slice.give_way(&shared.jobs.pace);
        job.check(&shared.jobs)?;
    }
    Ok(found)
}

/// Migrates a document, and others along. The more there are the likelier somebody writes one of them meanwhile: after a
/// conflict it tries fewer.
fn migrate(
    shared: &Shared,
    job: &Job,
    context: &Arc<Context>,
    id: &Value<'static>,
    together: &mut Together,
) -> Result<()> {
    let _turn = shared.locks.lock(&job.ns, id.or_null(), context)?;
    loop {
        job.check(&shared.jobs)?;
        let begun = Instant::now();
        let mut tx = begin(shared, Mode::Transaction, context)?;
        // Where a document lives is nobody's business.
        tx.set_silent(true);
        let Some(layout) = Roles::of(&*tx, &job.ns)?.and_then(|roles| roles.layout.clone()) else { return Ok(()) };
        let moved = Move { id: id.or_null(), out: job.direction() == Direction::Out, most: together.now() };
        match layout.migrate(&mut *tx, &job.ns, moved, context).and_then(|some| tx.commit().map(|_| some)) {
            Err(error) if conflicted(&error) => {}
            Err(error) => return Err(error),
            Ok(some) => {
                if some {
                    together.took(begun.elapsed());
                }
                return Ok(());
            }
        }
        together.fewer();
        std::thread::sleep(AFTER_CONFLICT);
    }
}

/// Gives every document what the derivations declared say it is to have. One that was cut off begins again: what is
/// right already is not written.
fn fill(shared: &Arc<Shared>, job: &Job, context: &Arc<Context>) -> Result<Option<Direction>> {
    let at = begin(shared, Mode::Auto, context)?;
    let derived = Roles::of(&*at, &job.ns)?.map(|roles| roles.derived.clone()).unwrap_or_default();
    // Writes to the sources that began before know nothing of who watches now.
    for derivation in &derived {
        shared.below.settle(&Namespace::new(job.ns.db(), derivation.source()), context)?;
    }
    if derived.is_empty() {
        return finish(shared, job, context);
    }
    delayed::begin_now(shared, &job.ns, true, context)?;
    let at = begin(shared, Mode::Auto, context)?;
    job.total.store(crate::read::count(&*at, &job.ns, &crate::stored::everything())?, Ordering::Relaxed);
    let mut cursor = crate::read::find(&*at, &job.ns, &crate::stored::everything())?;
    let mut slice = Slice::begin();
    while cursor.advance()? {
        let id = Value::own(crate::bson::id_of(cursor.doc()));
        repair::fill(shared, &job.ns, id.or_null(), context)?;
        job.done.fetch_add(1, Ordering::Relaxed);
        slice.give_way(&shared.jobs.pace);
        job.check(&shared.jobs)?;
    }
    delayed::filled(shared, &job.ns, context)?;
    finish(shared, job, context)
}

/// Takes the migration out of the options, or puts the next into its place; gives that one's direction.
fn finish(shared: &Arc<Shared>, job: &Job, context: &Arc<Context>) -> Result<Option<Direction>> {
    let mut tx = begin(shared, Mode::Auto, context)?;
    let Some(info) = tx.collection(&job.ns)? else { return Ok(None) };
    let layout = Roles::of(&*tx, &job.ns)?.and_then(|roles| roles.layout.clone());
    if job.direction() == Direction::In
        && let Some(layout) = &layout
        && layout.completed(&mut *tx, &job.ns)?
    {
        shared.below.wait_durable(tx.commit()?)?;
        return Ok(None);
    }
    let (options, next) = declare::after(&info.options, job.ns.collection(), job.direction());
    if job.direction() == Direction::Out
        && let Some(layout) = layout
    {
        // Before the options change: what is cut off in between is done again, and leaves nothing behind. Reads of
        // transactions that began before still see the documents at their snapshots.
        for beside in layout.beside(&job.ns) {
            tx.drop_collection(&beside)?;
        }
        layout.part(&mut *tx, &job.ns, &declare::parted(&info.options, job.ns.collection()))?;
    }
    if let Some(next) = next {
        let mut listed = crate::bson::without(options.listed.as_raw(), &["patterns"]);
        listed.append("patterns", &next);
        let wanted = declare::with_listed(&options, listed);
        if let Step::Migrate(options, direction) = declare::change(&mut *tx, &job.ns, options.listed.as_raw(), &wanted)?
        {
            let before = declare::before(&info.options).filter(|_| direction != Direction::Fill);
            let options = before.map_or(options.clone(), |before| declare::carrying(&options, &before));
            tx.set_options(&job.ns, &options)?;
            let token = tx.commit()?;
            shared.below.wait_durable(token)?;
            return Ok(Some(direction));
        }
    }
    tx.set_options(&job.ns, &options)?;
    let token = tx.commit()?;
    shared.below.wait_durable(token)?;
    // Somebody may have declared it and gone away before it was done.
    worker::watch(shared, &job.ns)?;
    let at = begin(shared, Mode::Auto, context)?;
    let layout = Roles::of(&*at, &job.ns)?.and_then(|roles| roles.layout.clone());
    if let Some(periodic) = layout.as_deref().and_then(Layout::periodic) {
        schedule::plan(shared, &job.ns, periodic.every())?;
    }
    Ok(None)
}
