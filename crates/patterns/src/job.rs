//! Migrations: bringing the documents of a collection into a layout or back to plain ones, in the background of other
//! clients' work, one document a transaction. What is under way is kept in the collection's options, so a migration that
//! was cut off goes on when the store is opened again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use espalier_query::Context;
use espalier_store::{Begin, Mode, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, Result, Value};

use crate::declare::{self, Direction, Step};
use crate::derive::{delayed, worker};
use crate::patterned::Shared;
use crate::repair;
use crate::roles::Roles;
use crate::schedule::{self, Schedule};
use crate::write::conflicted;

/// After this much work the migration rests as long, so that clients get their share of the machine.
pub const WORK: Duration = Duration::from_millis(4);

#[derive(Default)]
pub struct Jobs {
    running: Mutex<Vec<Arc<Job>>>,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    stop: AtomicBool,
    pub schedule: Schedule,
}

/// One migration.
pub struct Job {
    ns: Namespace,
    direction: Direction,
    done: AtomicU64,
    total: AtomicU64,
    result: Mutex<Option<Result<()>>>,
    ended: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    fn new(ns: &Namespace, direction: Direction) -> Job {
        Job {
            ns: ns.clone(),
            direction,
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            result: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    /// Waits for the end. Whoever waits may be interrupted; the migration goes on.
    pub fn wait(&self, context: &Context) -> Result<()> {
        let mut result = lock(&self.result);
        loop {
            if let Some(result) = &*result {
                return result.clone();
            }
            context.interrupt.check()?;
            result =
                self.ended.wait_timeout(result, Duration::from_millis(50)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Jobs {
    /// Starts the migration that the collection's options ask for.
    pub fn start(&self, shared: &Arc<Shared>, ns: &Namespace, direction: Direction) -> Result<Arc<Job>> {
        let mut running = lock(&self.running);
        if let Some(job) = running.iter().find(|job| job.ns == *ns) {
            return Ok(job.clone());
        }
        let job = Arc::new(Job::new(ns, direction));
        running.push(job.clone());
        let (shared, mine) = (shared.clone(), job.clone());
        let run = move || {
            let result = run(&shared, &mine);
            lock(&shared.jobs.running).retain(|job| !Arc::ptr_eq(job, &mine));
            *lock(&mine.result) = Some(result);
            mine.ended.notify_all();
        };
        let thread = std::thread::Builder::new().name("pattern".into()).spawn(run);
        let thread = thread.map_err(|e| Error::internal(format!("a migration could not be started: {e}")))?;
        lock(&self.threads).push(thread);
        Ok(job)
    }

    /// For `currentOp`.
    pub fn list(&self) -> Vec<DocBuf> {
        let mut all: Vec<DocBuf> = lock(&self.running).iter().map(|job| job.describe()).collect();
        all.extend(self.schedule.list());
        all
    }

    /// Ends what is running; it goes on at the next start.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.schedule.stop();
        for thread in lock(&self.threads).drain(..) {
            // A panic has been reported by the hook already.
            let _ = thread.join();
        }
    }
}

impl Jobs {
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Job {
    fn describe(&self) -> DocBuf {
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let percent = (done * 100).checked_div(total).unwrap_or(100).min(100);
        let mut doc = DocBuf::new();
        doc.append("type", "op")
            .append("desc", "PatternMigration")
            .append("op", "command")
            .append("ns", &self.ns.to_string())
            .append_doc("command", |c| {
                c.append("collMod", self.ns.collection()).append("migration", self.direction.name());
            })
            .append("msg", &format!("Pattern migration ({}): {done}/{total} {percent}%", self.direction.name()))
            .append_doc("progress", |p| {
                p.append("done", done as i64).append("total", total as i64);
            });
        doc
    }
}

/// A context for work that no client asked for.
pub fn own_context() -> Arc<Context> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Arc::new(Context::new(now.as_millis() as i64, now.as_nanos() as u64))
}

pub fn begin(shared: &Shared, mode: Mode, context: &Arc<Context>) -> Result<Box<dyn Transaction>> {
    shared.below.begin(Begin { mode, want_changes: false, raw: true, context: context.clone() })
}

fn run(shared: &Arc<Shared>, job: &Job) -> Result<()> {
    let context = own_context();
    // Writes that began before the declaration do not know of it yet.
    shared.below.settle(&job.ns, &context)?;
    let mut tx = begin(shared, Mode::Auto, &context)?;
    let Some(info) = tx.collection(&job.ns)? else { return Ok(()) };
    tx.set_options(&job.ns, &declare::settled(&info.options))?;
    shared.below.wait_durable(tx.commit()?)?;
    if job.direction == Direction::Out {
        let mut tx = begin(shared, Mode::Auto, &context)?;
        if let Some(layout) = Roles::of(&*tx, &job.ns)?.and_then(|roles| roles.layout.clone()) {
            layout.leaving(&mut *tx, &job.ns)?;
        }
        tx.commit()?;
    }
    if job.direction == Direction::Fill {
        return fill(shared, job, &context);
    }
    // Documents that change hands during a pass are met in the next; the last pass finds nothing.
    loop {
        match pass(shared, job, &context) {
            Ok(0) => return finish(shared, job, &context),
            Ok(_) => {}
            Err(error) if job.direction == Direction::Out && error.code() != Code::InterruptedAtShutdown => {
                // What cannot be folded back keeps the pattern, and what was folded back goes in again.
                turn_back(shared, job, &context)?;
                return Err(error);
            }
            Err(error) => return Err(error),
        }
    }
}

fn turn_back(shared: &Arc<Shared>, job: &Job, context: &Arc<Context>) -> Result<()> {
    let mut tx = begin(shared, Mode::Auto, context)?;
    let Some(info) = tx.collection(&job.ns)? else { return Ok(()) };
    tx.set_options(&job.ns, &declare::turned_back(&info.options))?;
    let token = tx.commit()?;
    shared.below.wait_durable(token)?;
    run(shared, &Job::new(&job.ns, Direction::In))
}

/// Migrates what is not migrated yet; returns how many there were.
fn pass(shared: &Arc<Shared>, job: &Job, context: &Arc<Context>) -> Result<u64> {
    let at = begin(shared, Mode::Auto, context)?;
    let Some(layout) = Roles::of(&*at, &job.ns)?.and_then(|roles| roles.layout.clone()) else { return Ok(0) };
    let out = job.direction == Direction::Out;
    if job.total.load(Ordering::Relaxed) == 0 {
        job.total.store(layout.left_count(&*at, &job.ns, out, context)?, Ordering::Relaxed);
    }
    let mut cursor = layout.left(&*at, &job.ns, out, context)?;
    let (mut found, mut since) = (0, Instant::now());
    while cursor.advance()? {
        found += 1;
        let id = Value::own(crate::bson::id_of(cursor.doc()));
        migrate(shared, job, context, &id)?;
        job.done.fetch_add(1, Ordering::Relaxed);
        if since.elapsed() >= WORK {
            std::thread::sleep(since.elapsed());
            since = Instant::now();
        }
        if shared.jobs.stop.load(Ordering::Relaxed) {
            return Err(Error::new(Code::InterruptedAtShutdown, "the migration goes on when the server starts again"));
        }
    }
    Ok(found)
}

fn migrate(shared: &Shared, job: &Job, context: &Arc<Context>, id: &Value<'static>) -> Result<()> {
    let _turn = shared.locks.lock(&job.ns, id.or_null(), context)?;
    loop {
        let mut tx = begin(shared, Mode::Transaction, context)?;
        // Where a document lives is nobody's business.
        tx.set_silent(true);
        let Some(layout) = Roles::of(&*tx, &job.ns)?.and_then(|roles| roles.layout.clone()) else { return Ok(()) };
        let done = layout.migrate(&mut *tx, &job.ns, id.or_null(), job.direction == Direction::Out, context);
        match done.and_then(|_| tx.commit()) {
            Err(error) if conflicted(&error) => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(()),
        }
    }
}

/// Gives every document what the derivations declared say it is to have. One that was cut off begins again: what is
/// right already is not written.
fn fill(shared: &Arc<Shared>, job: &Job, context: &Arc<Context>) -> Result<()> {
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
    let mut since = Instant::now();
    while cursor.advance()? {
        let id = Value::own(crate::bson::id_of(cursor.doc()));
        if let Err(error) = repair::fill(shared, &job.ns, id.or_null(), context) {
            // What cannot have the fields keeps the collection from having the patterns.
            let mut tx = begin(shared, Mode::Auto, context)?;
            if let Some(info) = tx.collection(&job.ns)? {
                tx.set_options(&job.ns, &declare::taken_back(&info.options))?;
                shared.below.wait_durable(tx.commit()?)?;
            }
            return Err(error);
        }
        job.done.fetch_add(1, Ordering::Relaxed);
        if since.elapsed() >= WORK {
            std::thread::sleep(since.elapsed());
            since = Instant::now();
        }
        if shared.jobs.stop.load(Ordering::Relaxed) {
            return Err(Error::new(
                Code::InterruptedAtShutdown,
                "the patterns are filled in when the server starts again",
            ));
        }
    }
    delayed::filled(shared, &job.ns, context)?;
    finish(shared, job, context)
}

/// Takes the migration out of the options; begins the next if there is one.
fn finish(shared: &Arc<Shared>, job: &Job, context: &Arc<Context>) -> Result<()> {
    let mut tx = begin(shared, Mode::Auto, context)?;
    let Some(info) = tx.collection(&job.ns)? else { return Ok(()) };
    let layout = Roles::of(&*tx, &job.ns)?.and_then(|roles| roles.layout.clone());
    if job.direction == Direction::In
        && let Some(layout) = &layout
        && layout.completed(&mut *tx, &job.ns)?
    {
        return shared.below.wait_durable(tx.commit()?);
    }
    let (options, next) = declare::after(&info.options, job.ns.collection(), job.direction);
    tx.set_options(&job.ns, &options)?;
    if job.direction == Direction::Out
        && let Some(layout) = layout
    {
        // Reads of transactions that began before still see the documents at their snapshots.
        for beside in layout.beside(&job.ns) {
            tx.drop_collection(&beside)?;
        }
    }
    if let Some(next) = next {
        let mut listed = options.listed.clone();
        listed.append("patterns", &next);
        let wanted = declare::with_listed(&options, listed);
        if let Step::Migrate(options, direction) = declare::change(&mut *tx, &job.ns, options.listed.as_raw(), &wanted)?
        {
            tx.set_options(&job.ns, &options)?;
            let token = tx.commit()?;
            shared.below.wait_durable(token)?;
            let next = Job::new(&job.ns, direction);
            return run(shared, &next);
        }
    }
    let token = tx.commit()?;
    shared.below.wait_durable(token)?;
    // Somebody may have declared it and gone away before it was done.
    worker::watch(shared, &job.ns)?;
    let at = begin(shared, Mode::Auto, context)?;
    match Roles::of(&*at, &job.ns)?.and_then(|roles| roles.layout.clone()) {
        Some(layout) => match layout.periodic() {
            Some(periodic) => schedule::plan(shared, &job.ns, periodic.every()),
            None => Ok(()),
        },
        None => Ok(()),
    }
}
