//! What patterns do after the commit that made it necessary: one thread for all databases, asleep while there is nothing
//! to do. What is to be done is marked in the database, so that what a crash cuts off goes on at the next start.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use espalier_query::Context;
use espalier_store::{Mode, Namespace};
use espalier_value::{Code, DocBuf, Error, Result, Value};

use super::delayed::{self, Caught};
use super::marks::{self, Mark};
use crate::bson::id_of;
use crate::declare::pending;
use crate::job::{begin, own_context};
use crate::pace::Slice;
use crate::patterned::Shared;
use crate::repair;
use crate::roles::Roles;
use crate::sleeper::{Next, Sleeper};
use crate::write::conflicted;

/// Marks that are looked at together.
const MARKS: u64 = 100;
/// After an error it is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The thread, and what it goes by.
pub(crate) type Worker = Sleeper<State>;

#[derive(Default)]
pub(crate) struct State {
    /// Databases in which something may be to be done.
    todo: BTreeSet<Box<str>>,
    /// Collections with delayed derivations, when each is looked at next, and when it was last found up to date.
    delayed: HashMap<Namespace, Due>,
    /// What it is at: the mark, documents done and to do.
    at: Option<(Namespace, Mark, u64, u64)>,
}

struct Due {
    at: Instant,
    up: Instant,
}

/// Something to do.
enum Task {
    /// What is marked in a database.
    Marks(Box<str>),
    /// What has happened to the sources of a collection.
    Delayed(Namespace),
}

impl Worker {
    /// For `currentOp`.
    pub fn list(&self) -> Vec<DocBuf> {
        let state = self.lock();
        let Some((ns, mark, done, total)) = &state.at else { return Vec::new() };
        let percent = (done * 100).checked_div(*total).unwrap_or(100).min(100);
        let mut doc = DocBuf::new();
        doc.append("type", "op")
            .append("desc", "PatternFollow")
            .append("op", "update")
            .append("ns", &ns.to_string())
            .append_doc("command", |c| {
                c.append("pattern", &*mark.pattern).append("key", &mark.key.to_array());
            })
            .append("msg", &format!("Pattern {}: {done}/{total} {percent}%", mark.pattern))
            .append_doc("progress", |p| {
                p.append("done", *done as i64).append("total", *total as i64);
            });
        vec![doc]
    }

    /// How long ago a collection's delayed derivations were up to date.
    pub fn lag(&self, ns: &Namespace) -> Option<Duration> {
        self.lock().delayed.get(ns).map(|due| due.up.elapsed())
    }

    /// The longest of all, for metrics.
    pub fn lags(&self) -> Vec<(Namespace, Duration)> {
        self.lock().delayed.iter().map(|(ns, due)| (ns.clone(), due.up.elapsed())).collect()
    }

    /// The next thing to do; `None` at the end.
    fn next_task(&self) -> Option<Task> {
        self.next(|state, now| {
            if let Some(db) = state.todo.pop_first() {
                return Next::Now(Task::Marks(db));
            }
            let first = state.delayed.iter().min_by_key(|(_, due)| due.at).map(|(ns, due)| (ns.clone(), due.at));
            match first {
                Some((ns, at)) if at <= now => Next::Now(Task::Delayed(ns)),
                later => Next::At(later.map(|(_, at)| at)),
            }
        })
    }
}

/// Something may be to be done in a database.
pub(crate) fn wake(shared: &Arc<Shared>, db: &str) -> Result<()> {
    start(shared, |state| {
        state.todo.insert(db.into());
    })
}

/// A collection may have delayed derivations.
pub(crate) fn watch(shared: &Arc<Shared>, ns: &Namespace) -> Result<()> {
    let at = begin(shared, Mode::Auto, &own_context())?;
    if delayed::within(&*at, ns)?.is_none() {
        return Ok(());
    }
    let now = Instant::now();
    start(shared, |state| {
        state.delayed.entry(ns.clone()).or_insert(Due { at: now, up: now });
    })
}

fn start(shared: &Arc<Shared>, change: impl FnOnce(&mut State)) -> Result<()> {
    let mine = shared.clone();
    shared.worker.wake("follow", change, move || serve(&mine))
}

fn serve(shared: &Arc<Shared>) {
    while let Some(task) = shared.worker.next_task() {
        let context = own_context();
        match task {
            Task::Marks(db) => {
                let done = database(shared, &db, &context);
                shared.worker.lock().at = None;
                if done.is_err() && !shared.worker.is_stopping() {
                    shared.worker.rest(RETRY).todo.insert(db);
                }
            }
            Task::Delayed(ns) => {
                let next = follow(shared, &ns, &context);
                let mut state = shared.worker.lock();
                let now = Instant::now();
                match (next, state.delayed.get_mut(&ns)) {
                    (Ok(None), _) => drop(state.delayed.remove(&ns)),
                    (Ok(Some((Caught::Up, within))), Some(due)) => *due = Due { at: now + within, up: now },
                    (Ok(Some((_, _))), Some(due)) => due.at = now,
                    (Err(_), Some(due)) => due.at = now + RETRY,
                    (_, None) => {}
                }
            }
        }
    }
}

/// Lets the next changes take effect; `None` if the collection has no delayed derivations any more.
fn follow(shared: &Arc<Shared>, ns: &Namespace, context: &Arc<Context>) -> Result<Option<(Caught, Duration)>> {
    let at = begin(shared, Mode::Auto, context)?;
    let Some(within) = delayed::within(&*at, ns)? else { return Ok(None) };
    if at.collection(ns)?.is_some_and(|info| pending(info.options.listed.as_raw()).is_some()) {
        // A migration is computing everything; it says when it is done.
        std::thread::sleep(within.min(RETRY));
        return Ok(Some((Caught::Behind, within)));
    }
    drop(at);
    let caught = delayed::catch_up(shared, ns, context)?;
    if matches!(caught, Caught::Lost) {
        refill(shared, ns, context)?;
    }
    Ok(Some((caught, within)))
}

/// Computes everything anew.
fn refill(shared: &Arc<Shared>, ns: &Namespace, context: &Arc<Context>) -> Result<()> {
    delayed::begin_now(shared, ns, true, context)?;
    let at = begin(shared, Mode::Auto, context)?;
    let mut cursor = crate::read::find(&*at, ns, &crate::stored::everything())?;
    while cursor.advance()? {
        if shared.worker.is_stopping() {
            return Err(Error::new(Code::InterruptedAtShutdown, "the patterns go on when the server starts again"));
        }
        let id = Value::own(id_of(cursor.doc()));
        repair::fill(shared, ns, id.or_null(), context)?;
    }
    delayed::filled(shared, ns, context)
}

/// Does what is marked in a database, until nothing is.
fn database(shared: &Arc<Shared>, db: &str, context: &Arc<Context>) -> Result<()> {
    loop {
        let at = begin(shared, Mode::Auto, context)?;
        let marks = marks::list(&*at, db, MARKS)?;
        drop(at);
        if marks.is_empty() || shared.worker.is_stopping() {
            return Ok(());
        }
        for mark in marks {
            one(shared, &Namespace::new(db, &mark.of), &mark, context)?;
            if shared.worker.is_stopping() {
                return Ok(());
            }
        }
    }
}

/// Brings the documents with a key in line, and takes the mark away if nothing was marked anew meanwhile.
fn one(shared: &Arc<Shared>, ns: &Namespace, mark: &Mark, context: &Arc<Context>) -> Result<()> {
    let at = begin(shared, Mode::Auto, context)?;
    let derived = Roles::of(&*at, ns)?.map(|roles| roles.derived.clone()).unwrap_or_default();
    for derivation in derived.iter().filter(|derivation| derivation.kind() == &*mark.pattern) {
        let Some(filter) = derivation.concerned(&mark.key)? else { continue };
        let find = crate::stored::query(filter);
        let total = crate::read::count(&*at, ns, &find)?;
        let mut cursor = crate::read::find(&*at, ns, &find)?;
        let (mut done, mut slice) = (0, Slice::begin());
        while cursor.advance()? {
            let id = Value::own(id_of(cursor.doc()));
            repair::follow(shared, ns, id.or_null(), &**derivation, context)?;
            done += 1;
            shared.worker.lock().at = Some((ns.clone(), mark.clone(), done, total));
            slice.give_way(&shared.jobs.pace);
            if shared.worker.is_stopping() {
                return Ok(());
            }
        }
    }
    loop {
        let mut tx = begin(shared, Mode::Transaction, context)?;
        match mark.remove(&mut *tx, ns).and_then(|_| tx.commit()) {
            Err(error) if conflicted(&error) => std::thread::yield_now(),
            done => return done.map(drop),
        }
    }
}
