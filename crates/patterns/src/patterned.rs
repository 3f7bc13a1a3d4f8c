//! A store with patterns: wraps another store.

use std::sync::Arc;
use std::time::Duration;

use espalier_query::Context;
use espalier_query::stage::Spill;
use espalier_store::{
    Begin, CommitToken, DefaultCollation, Feed, Mode, Namespace, Remembered, RememberedSession, SessionId, Store,
    Transaction, Watch,
};
use espalier_value::{DocBuf, Result};

use crate::declare;
use crate::derive::gate;
use crate::derive::worker::{self, Worker};
use crate::job::{Jobs, own_context};
use crate::layout::Layout;
use crate::locks::Locks;
use crate::raw::RawTxn;
use crate::roles::Roles;
use crate::schedule;
use crate::shared::drop_orphans;
use crate::txn::PatternedTxn;
use crate::write::{Combiner, UpdateCombiner};

/// A store whose collections may have patterns.
pub struct Patterned {
    shared: Arc<Shared>,
}

/// What its transactions and migrations share.
pub(crate) struct Shared {
    pub below: Arc<dyn Store>,
    pub locks: Locks,
    pub combiner: Combiner,
    pub update_combiner: UpdateCombiner,
    pub jobs: Jobs,
    pub worker: Worker,
}

impl Patterned {
    /// Migrations that were under way when the store was closed go on.
    pub fn open(below: Arc<dyn Store>) -> Result<Patterned> {
        let shared = Arc::new(Shared {
            below,
            locks: Locks::new(),
            combiner: Combiner::default(),
            update_combiner: UpdateCombiner::default(),
            jobs: Jobs::default(),
            worker: Worker::default(),
        });
        let begin = Begin { mode: Mode::Auto, want_changes: false, raw: true, context: own_context() };
        let mut at = shared.below.begin(begin)?;
        for database in at.databases()? {
            drop_orphans(&mut *at, &database.name)?;
            if at.collection(&gate::place(&Namespace::new(&database.name, "")))?.is_some() {
                worker::wake(&shared, &database.name)?;
            }
            for collection in at.collections(&database.name)? {
                if let Some(direction) = declare::pending(collection.options.listed.as_raw()) {
                    let ns = Namespace::new(&database.name, &collection.name);
                    shared.jobs.start(&shared, &ns, direction)?;
                } else if collection.options.layer.is_some() {
                    // What a run that was cut off had still to do is due, so every one begins with a run.
                    let ns = Namespace::new(&database.name, &collection.name);
                    worker::watch(&shared, &ns)?;
                    let layout = Roles::of(&*at, &ns)?.and_then(|roles| roles.layout.clone());
                    if layout.as_deref().and_then(Layout::periodic).is_some() {
                        schedule::plan(&shared, &ns, Duration::ZERO)?;
                    }
                }
            }
        }
        Ok(Patterned { shared })
    }

    /// A client's transaction on one of the store below.
    fn on(&self, below: Box<dyn Transaction>, begin: Begin, raw: bool) -> Box<dyn Transaction> {
        let shared = self.shared.clone();
        match raw {
            true => Box::new(RawTxn::new(shared, below, begin)),
            false => Box::new(PatternedTxn::new(shared, below, begin)),
        }
    }

    /// Ends background work. What it had still to do is done after the next start.
    pub fn close(&self) {
        self.shared.jobs.stop();
        self.shared.worker.stop();
    }
}

impl Drop for Patterned {
    fn drop(&mut self) {
        self.close();
    }
}

impl Store for Patterned {
    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>> {
        let (raw, begin) = (begin.raw, Begin { raw: false, ..begin });
        let below = self.shared.below.begin(begin.clone())?;
        self.shared.jobs.pace.note_client();
        Ok(self.on(below, begin, raw))
    }

    fn default_collation(&self, ns: &Namespace) -> DefaultCollation {
        self.shared.below.default_collation(ns)
    }

    fn begin_at(&self, begin: Begin, time: Option<u64>) -> Result<(Box<dyn Transaction>, u64)> {
        let (raw, begin) = (begin.raw, Begin { raw: false, ..begin });
        let (below, time) = self.shared.below.begin_at(begin.clone(), time)?;
        Ok((self.on(below, begin, raw), time))
    }

    fn time(&self) -> u64 {
        self.shared.below.time()
    }

    fn wait_durable(&self, commit: CommitToken) -> Result<()> {
        self.shared.below.wait_durable(commit)
    }

    fn flush(&self) -> Result<()> {
        self.shared.below.flush()
    }

    fn status(&self) -> DocBuf {
        let mut status = self.shared.below.status();
        status.append_doc("patterns", |patterns| {
            patterns.append_array("delayed", |list| {
                for (ns, lag) in self.shared.worker.lags() {
                    list.push_doc(|doc| {
                        doc.append("ns", &ns.to_string()).append("lagMillis", lag.as_millis() as i64);
                    });
                }
            });
        });
        status
    }

    fn spill(&self) -> Option<Arc<dyn Spill>> {
        self.shared.below.spill()
    }

    fn jobs(&self) -> Vec<DocBuf> {
        let mut jobs = self.shared.below.jobs();
        jobs.extend(self.shared.jobs.list());
        jobs.extend(self.shared.worker.list());
        jobs
    }

    fn kill_job(&self, op: u64) -> bool {
        self.shared.jobs.kill(op) || self.shared.below.kill_job(op)
    }

    fn remembered(&self, session: &SessionId, txn_number: i64) -> Result<Vec<Remembered>> {
        self.shared.below.remembered(session, txn_number)
    }

    fn remembered_sessions(&self) -> Result<Vec<RememberedSession>> {
        self.shared.below.remembered_sessions()
    }

    fn forget(&self, session: &SessionId, from_statement: i32) -> Result<()> {
        self.shared.below.forget(session, from_statement)
    }

    fn durable_time(&self) -> u64 {
        self.shared.below.durable_time()
    }

    fn changes(&self, watch: Watch) -> Result<Box<dyn Feed>> {
        self.shared.below.changes(watch)
    }

    fn on_change(&self, listener: Box<dyn Fn() + Send + Sync>) {
        self.shared.below.on_change(listener);
    }

    fn run_pattern(&self, ns: &Namespace, context: &Arc<Context>) -> Result<Option<DocBuf>> {
        schedule::run_now(&self.shared, ns, context)
    }

    fn settle(&self, ns: &Namespace, context: &Context) -> Result<()> {
        self.shared.below.settle(ns, context)
    }
}
