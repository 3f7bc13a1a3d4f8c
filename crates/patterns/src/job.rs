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
use crate::layout::Layout;
use crate::pace::{Pace, Slice};
use crate::patterned::Shared;
use crate::repair;
use crate::roles::Roles;
use crate::schedule::{self, Schedule};
use crate::write::conflicted;

/// `killOp` knows jobs by numbers that no client's operation has.
const FIRST_JOB_OP: u64 = 1 << 40;

#[derive(Default)]
pub struct Jobs {
    running: Mutex<Vec<Arc<Job>>>,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    stop: AtomicBool,
    last_op: AtomicU64,
    pub pace: Pace,
    pub schedule: Schedule,
}

/// One migration, with what comes after it: the next declaration, or the way back.
pub struct Job {
    op: u64,
    ns: Namespace,
    direction: Mutex<Direction>,
    /// `killOp` asked for its end.
    killed: AtomicBool,
    started: Instant,
    done: AtomicU64,
    total: AtomicU64,
    result: Mutex<Option<Result<()>>>,
    ended: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    fn new(op: u64, ns: &Namespace, direction: Direction) -> Job {
        Job {
            op,
            ns: ns.clone(),
            direction: Mutex::new(direction),
            killed: AtomicBool::new(false),
            started: Instant::now(),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            result: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    fn direction(&self) -> Direction {
        *lock(&self.direction)
    }

    /// An error if it is to end here.
    fn check(&self, jobs: &Jobs) -> Result<()> {
        if jobs.is_stopping() {
            return Err(Error::new(Code::InterruptedAtShutdown, "the migration goes on when the server starts again"));
        }
        if self.killed.load(Ordering::Relaxed) {
            return Err(Error::new(Code::Interrupted, "the migration was stopped by killOp and turned back"));
        }
        Ok(())
    }

    /// Begins to count anew, in this direction.
    fn go(&self, direction: Direction) {
        *lock(&self.direction) = direction;
        self.done.store(0, Ordering::Relaxed);
        self.total.store(0, Ordering::Relaxed);
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
        let job = Arc::new(Job::new(self.next_op(), ns, direction));
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

    /// The number by which `killOp` knows a job.
    pub fn next_op(&self) -> u64 {
        FIRST_JOB_OP + self.last_op.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks a migration to turn back, or a run to end; false if there is none with this number.
    pub fn kill(&self, op: u64) -> bool {
        let running = lock(&self.running);
        let job = running.iter().find(|job| job.op == op);
        if let Some(job) = job {
            job.killed.store(true, Ordering::Relaxed);
        }
        job.is_some() || self.schedule.kill(op)
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
        let direction = self.direction().name();
        let mut doc = DocBuf::new();
        doc.append("type", "op")
            .append("desc", "PatternMigration")
            .append("opid", self.op as i64)
            .append("op", "command")
            .append("ns", &self.ns.to_string())
            .append("microsecs_running", self.started.elapsed().as_micros() as i64)
            .append_doc("command", |c| {
                c.append("collMod", self.ns.collection()).append("migration", direction);
            })
            .append("msg", &format!("Pattern migration ({direction}): {done}/{total} {percent}%"))
            .append("killPending", self.killed.load(Ordering::Relaxed))
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

/// Migrates to the end: that of the declaration, or, if it cannot be reached or was not wanted any more, that of the way
/// back; then the error says why.
fn run(shared: &Arc<Shared>, job: &Job) -> Result<()> {
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
    let (mut found, mut slice) = (0, Slice::begin());
    while cursor.advance()? {
        found += 1;
        let id = Value::own(crate::bson::id_of(cursor.doc()));
        migrate(shared, job, context, &id)?;
        job.done.fetch_add(1, Ordering::Relaxed);
        slice.give_way(&shared.jobs.pace);
        job.check(&shared.jobs)?;
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
        let done = layout.migrate(&mut *tx, &job.ns, id.or_null(), job.direction() == Direction::Out, context);
        match done.and_then(|_| tx.commit()) {
            Err(error) if conflicted(&error) => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(()),
        }
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
