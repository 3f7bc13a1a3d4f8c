//! Migrations as jobs: which are under way, how far, and how they are stopped. What is under way is kept in the
//! collection's options, so a migration that was cut off goes on when the store is opened again.

mod migration;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use espalier_query::Context;
use espalier_store::{Begin, Mode, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, Result};

use crate::declare::Direction;
use crate::pace::Pace;
use crate::patterned::Shared;
use crate::schedule::Schedule;

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
            let result = migration::run(&shared, &mine);
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
