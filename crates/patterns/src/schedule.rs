//! Work that patterns do of themselves from time to time: one thread for all collections, asleep until the next is due.
//!
//! A run looks for documents that are due, a batch at a time, each batch at a fresh snapshot, and does the work for a few
//! documents in one transaction, or for each in its own if somebody is in the way. It keeps nothing that would have to
//! survive it: one that is cut off leaves documents that are still due, and the next finds them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use espalier_query::expression::Scope;
use espalier_query::projection::{Kind, Projection};
use espalier_query::{Context, Filter};
use espalier_store::{CommitToken, Find, Mode, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, Result, Value, ValueRef, doc, key};

use crate::derive::worker;
use crate::job::{begin, own_context};
use crate::layout::{Layout, Periodic};
use crate::pace::{Slice, Together};
use crate::patterned::Shared;
use crate::roles::Roles;
use crate::sleeper::{Next, Sleeper};
use crate::write::{conflicted, worked};

/// A run that takes this long counts what is left, for those who ask how far it is; a shorter one would be over by then.
const COUNTED_AFTER: Duration = Duration::from_secs(1);
/// Documents that a run had to leave, beyond which it gives up: something is wrong with all of them.
const KEPT_MAX: usize = 10_000;

/// The thread, and what it goes by.
pub type Schedule = Sleeper<State>;

#[derive(Default)]
pub struct State {
    due: HashMap<Namespace, Instant>,
    running: Vec<Arc<Run>>,
    /// What came of the last run of each collection.
    last: HashMap<Namespace, DocBuf>,
}

/// One run.
pub struct Run {
    op: u64,
    /// `killOp` asked for its end.
    killed: AtomicBool,
    ns: Namespace,
    started: Instant,
    started_ms: i64,
    /// 0 while it is not known.
    total: AtomicU64,
    moved: AtomicU64,
    kept: AtomicU64,
}

impl Schedule {
    /// For `currentOp`.
    pub fn list(&self) -> Vec<DocBuf> {
        self.lock().running.iter().map(|run| run.describe()).collect()
    }

    /// Asks a run to end; false if there is none with this number.
    pub fn kill(&self, op: u64) -> bool {
        let state = self.lock();
        let run = state.running.iter().find(|run| run.op == op);
        if let Some(run) = run {
            run.killed.store(true, Ordering::Relaxed);
        }
        run.is_some()
    }

    /// What came of the last run on a collection.
    pub fn last(&self, ns: &Namespace) -> Option<DocBuf> {
        self.lock().last.get(ns).cloned()
    }

    /// The next collection that is due; `None` at the end.
    fn next_due(&self) -> Option<Namespace> {
        self.next(|state, now| {
            let first = state.due.iter().min_by_key(|(_, due)| **due).map(|(ns, due)| (ns.clone(), *due));
            match first {
                Some((ns, due)) if due <= now => {
                    state.due.remove(&ns);
                    Next::Now(ns)
                }
                later => Next::At(later.map(|(_, due)| due)),
            }
        })
    }
}

/// Plans the next run on a collection.
pub fn plan(shared: &Arc<Shared>, ns: &Namespace, after: Duration) -> Result<()> {
    let mine = shared.clone();
    let plan = |state: &mut State| {
        state.due.insert(ns.clone(), Instant::now() + after);
    };
    shared.jobs.schedule.wake("schedule", plan, move || serve(&mine))
}

fn serve(shared: &Arc<Shared>) {
    while let Some(ns) = shared.jobs.schedule.next_due() {
        // What went wrong is told with the last run, and tried again when it is due again.
        let _ = run(shared, &ns, &own_context(), false);
        let layout = || -> Result<Option<Arc<dyn Layout>>> {
            let at = begin(shared, Mode::Auto, &own_context())?;
            Ok(Roles::of(&*at, &ns)?.and_then(|roles| roles.layout.clone()))
        };
        if let Ok(Some(layout)) = layout()
            && let Some(periodic) = layout.periodic()
        {
            let mut state = shared.jobs.schedule.lock();
            state.due.entry(ns).or_insert_with(|| Instant::now() + periodic.every());
        } else {
            shared.jobs.schedule.lock().last.remove(&ns);
        }
    }
}

/// Does what can be done on a collection, and says what it did; `None` if its patterns have no work of their own. If a run
/// is under way, it comes after that.
pub fn run_now(shared: &Arc<Shared>, ns: &Namespace, context: &Arc<Context>) -> Result<Option<DocBuf>> {
    run(shared, ns, context, true)
}

/// `on_demand`: somebody asked for it, and its time may not have come.
fn run(shared: &Arc<Shared>, ns: &Namespace, context: &Arc<Context>, on_demand: bool) -> Result<Option<DocBuf>> {
    // No client can have a collection of this name.
    let turn = Namespace::new(ns.db(), &format!("{}$run", ns.collection()));
    let _one_at_a_time = shared.locks.lock(&turn, ValueRef::Null, context)?;
    let at = begin(shared, Mode::Auto, context)?;
    let Some(roles) = Roles::of(&*at, ns)? else { return Ok(None) };
    let Some(layout) = roles.layout.clone() else { return Ok(None) };
    let Some(periodic) = layout.periodic() else { return Ok(None) };
    let run = Arc::new(Run {
        op: shared.jobs.next_op(),
        killed: AtomicBool::new(false),
        ns: ns.clone(),
        started: Instant::now(),
        started_ms: context.now_ms,
        total: AtomicU64::new(0),
        moved: AtomicU64::new(0),
        kept: AtomicU64::new(0),
    });
    shared.jobs.schedule.lock().running.push(run.clone());
    let due = if on_demand { periodic.due_on_demand(context.now_ms) } else { periodic.due(context.now_ms) };
    let done = run.all(shared, periodic, &due, context);
    let report = run.report(done.as_ref().err());
    let mut state = shared.jobs.schedule.lock();
    state.running.retain(|other| !Arc::ptr_eq(other, &run));
    state.last.insert(ns.clone(), report.clone());
    drop(state);
    done.map(|()| Some(report))
}

impl Run {
    fn all(&self, shared: &Arc<Shared>, periodic: &dyn Periodic, due: &DocBuf, context: &Arc<Context>) -> Result<()> {
        let due = Arc::new(Filter::parse(due.as_raw(), &Scope::of(context))?);
        let place = periodic.place(&self.ns);
        let only_id = doc! { "_id": 1 };
        let only_id = Arc::new(Projection::parse(only_id.as_raw(), &Scope::default(), Kind::Find)?);
        let mut kept: HashSet<Vec<u8>> = HashSet::new();
        let (mut last, mut slice) = (CommitToken::default(), Slice::begin());
        let mut together = Together::new(periodic.together());
        loop {
            let at = begin(shared, Mode::Auto, context)?;
            let mut find = Find::new(due.clone(), context.clone());
            if self.total.load(Ordering::Relaxed) == 0 && self.started.elapsed() >= COUNTED_AFTER {
                self.total.store(self.done() + at.count(&place, &find)?, Ordering::Relaxed);
            }
            find.projection = Some(only_id.clone());
            find.limit = Some(periodic.batch() + kept.len() as u64);
            let mut cursor = at.find(&place, &find)?;
            let mut ids: Vec<Value<'static>> = Vec::new();
            while cursor.advance()? {
                let id = crate::bson::id_of(cursor.doc());
                if !kept.contains(&key::of(id)) {
                    ids.push(Value::own(id));
                }
            }
            drop((cursor, at));
            let mut progress = false;
            let mut rest = ids.as_slice();
            while !rest.is_empty() {
                let some;
                (some, rest) = rest.split_at(together.now().min(rest.len()));
                self.check(shared, context)?;
                let begun = Instant::now();
                if let Some((token, moved)) = self.together(shared, context, some, &due)? {
                    together.took(begun.elapsed());
                    last = last.max(token);
                    self.moved.fetch_add(moved, Ordering::Relaxed);
                    progress |= moved > 0;
                    slice.give_way(&shared.jobs.pace);
                    continue;
                }
                together.fewer();
                for id in some {
                    self.check(shared, context)?;
                    match self.one(shared, context, id, &due) {
                        Ok(Some(token)) => {
                            last = last.max(token);
                            self.moved.fetch_add(1, Ordering::Relaxed);
                            progress = true;
                        }
                        Ok(None) => {}
                        // It cannot be moved; that keeps no other from it.
                        Err(error) if is_of_document(&error) && kept.len() < KEPT_MAX => {
                            kept.insert(key::of(id.or_null()));
                            self.kept.fetch_add(1, Ordering::Relaxed);
                            progress = true;
                        }
                        Err(error) => return Err(error),
                    }
                    slice.give_way(&shared.jobs.pace);
                }
            }
            if !progress {
                return shared.below.wait_durable(last);
            }
        }
    }

    /// Whether to go on.
    fn check(&self, shared: &Shared, context: &Context) -> Result<()> {
        context.interrupt.check()?;
        if self.killed.load(Ordering::Relaxed) {
            return Err(Error::new(Code::Interrupted, "the run was stopped by killOp"));
        }
        if shared.jobs.is_stopping() {
            return Err(Error::new(Code::InterruptedAtShutdown, "the run goes on when the server starts again"));
        }
        Ok(())
    }

    /// Does the work for a few documents in one transaction, and says for how many there was something to do; `None` if
    /// somebody else or one of the documents is in the way, and nothing was done.
    fn together(
        &self,
        shared: &Arc<Shared>,
        context: &Arc<Context>,
        ids: &[Value<'static>],
        due: &Filter,
    ) -> Result<Option<(CommitToken, u64)>> {
        let mut tx = begin(shared, Mode::Transaction, context)?;
        tx.set_silent(true);
        let Some(roles) = Roles::of(&*tx, &self.ns)? else { return Ok(None) };
        let Some(layout) = roles.layout.clone().filter(|_| !roles.leaving && !roles.settling) else { return Ok(None) };
        let Some(periodic) = layout.periodic() else { return Ok(None) };
        let work = |tx: &mut dyn Transaction| periodic.work_on_all(tx, &self.ns, ids, due, context);
        let worked = match worked(&mut *tx, &self.ns, &roles, ids, context, work) {
            Ok(worked) => worked,
            Err(error) if conflicted(&error) || is_of_document(&error) => {
                tx.abort();
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        match tx.commit() {
            Ok(token) => {
                if worked.marked {
                    worker::wake(shared, self.ns.db())?;
                }
                Ok(Some((token, worked.done)))
            }
            Err(error) if conflicted(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `None` if the document is not due any more, or the pattern is going.
    fn one(
        &self,
        shared: &Arc<Shared>,
        context: &Arc<Context>,
        id: &Value<'static>,
        due: &Filter,
    ) -> Result<Option<CommitToken>> {
        let _turn = shared.locks.lock(&self.ns, id.or_null(), context)?;
        loop {
            context.interrupt.check()?;
            let mut tx = begin(shared, Mode::Transaction, context)?;
            // Where a document lives is nobody's business.
            tx.set_silent(true);
            let Some(roles) = Roles::of(&*tx, &self.ns)? else { return Ok(None) };
            let Some(layout) = roles.layout.clone().filter(|_| !roles.leaving && !roles.settling) else {
                return Ok(None);
            };
            let Some(periodic) = layout.periodic() else { return Ok(None) };
            let work =
                |tx: &mut dyn Transaction| Ok(u64::from(periodic.work(tx, &self.ns, id.or_null(), due, context)?));
            match worked(&mut *tx, &self.ns, &roles, std::slice::from_ref(id), context, work) {
                Ok(worked) if worked.done == 0 => return Ok(None),
                Ok(worked) => match tx.commit() {
                    Ok(token) => {
                        if worked.marked {
                            worker::wake(shared, self.ns.db())?;
                        }
                        return Ok(Some(token));
                    }
                    Err(error) if conflicted(&error) => {}
                    Err(error) => return Err(error),
                },
                Err(error) if conflicted(&error) => tx.abort(),
                Err(error) => {
                    tx.abort();
                    return Err(error);
                }
            }
            std::thread::yield_now();
        }
    }

    fn report(&self, error: Option<&Error>) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append("startedAt", ValueRef::DateTime(self.started_ms))
            .append("millis", self.started.elapsed().as_millis() as i64)
            .append("moved", self.moved.load(Ordering::Relaxed) as i64)
            .append("kept", self.kept.load(Ordering::Relaxed) as i64);
        if let Some(error) = error {
            doc.append("error", error.message());
        }
        doc
    }

    fn done(&self) -> u64 {
        self.moved.load(Ordering::Relaxed) + self.kept.load(Ordering::Relaxed)
    }

    fn describe(&self) -> DocBuf {
        let (done, total) = (self.done(), self.total.load(Ordering::Relaxed));
        let total = (total > 0).then_some(total.max(done));
        let message = match total {
            Some(total) => format!("Pattern run: {done}/{total} {}%", done * 100 / total),
            None => format!("Pattern run: {done}"),
        };
        let mut doc = DocBuf::new();
        doc.append("type", "op")
            .append("desc", "PatternRun")
            .append("opid", self.op as i64)
            .append("op", "command")
            .append("ns", &self.ns.to_string())
            .append("microsecs_running", self.started.elapsed().as_micros() as i64)
            .append_doc("command", |c| {
                c.append("runPattern", self.ns.collection());
            })
            .append("msg", &message)
            .append_doc("progress", |p| {
                p.append("done", done as i64);
                if let Some(total) = total {
                    p.append("total", total as i64);
                }
            });
        doc
    }
}

/// An entry of an index that is larger than this server lets one be.
const KEY_TOO_LARGE: Code = Code(17280);

/// Something about the one document: its key is in the way, or it is too large.
fn is_of_document(error: &Error) -> bool {
    matches!(error.code(), Code::DuplicateKey | Code::BSONObjectTooLarge | KEY_TOO_LARGE)
}
