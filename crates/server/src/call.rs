//! What a command gets to work with: the server, the client, its reply, and what it tells about itself for the log.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use espalier_query::Context;
use espalier_store::{Begin, CommitToken, DefaultCollation, Mode, Namespace, Transaction};
use espalier_value::{Code, Collation, Error, RawDoc, Result};

use crate::auth::Rights;
use crate::client::{Client, Running};
use crate::cursors::OpenCursor;
use crate::reply::DocWriter;
use crate::request::Request;
use crate::server::Server;
use crate::sessions::{CheckedOut, Joint, Participant, Retry, Seen};

pub struct Call<'c> {
    pub server: &'c Arc<Server>,
    pub client: &'c Arc<Client>,
    /// The reply without `ok`, which comes from the command's result.
    pub reply: DocWriter<'c>,
    pub running: Running<'c>,
    /// What the client may do.
    pub rights: Rights,
    pub started: Instant,
    /// The wall clock at the beginning, in milliseconds.
    pub now_ms: i64,
    pub max_time: Option<Duration>,
    /// This is the second look at a request that wanted to wait.
    pub waited: bool,
    /// The request came as OP_QUERY.
    pub legacy: bool,
    /// Answer this request later.
    pub wait: Option<Duration>,
    /// Close the connection after the reply.
    pub close: bool,
    /// The session, if this command has it for itself.
    pub session: Option<CheckedOut<'c>>,
    /// The transaction that this command is part of.
    pub transaction: Option<Arc<Joint>>,
    /// The command reads at a snapshot that later ones can come back to: the time of it, once it is known.
    pub snapshot: Option<Cell<Option<u64>>>,
    /// A write of this command failed, though the command did not.
    pub write_failed: bool,
    /// The command asks for the stored documents and not for those that patterns make of them.
    pub raw: bool,
    pub told: Told,
}

/// What a command tells about its work.
#[derive(Default)]
pub struct Told {
    pub keys_examined: u64,
    pub docs_examined: u64,
    pub returned: u64,
    pub plan: String,
}

impl Told {
    /// Adds a batch that was read from a cursor.
    pub fn add(&mut self, server: &Server, cursor: &mut OpenCursor, returned: u64, started: Instant) {
        let (keys, docs) = cursor.newly_examined();
        self.keys_examined += keys;
        self.docs_examined += docs;
        self.returned += returned;
        server.metrics.keys_examined.add(keys);
        server.metrics.docs_examined.add(docs);
        server.metrics.docs_returned.add(returned);
        // Only the log of slow commands shows the plan.
        if started.elapsed().as_millis() as u64 >= server.options.limits.slow_ms {
            self.plan = cursor.plan_summary();
        }
    }
}

impl Call<'_> {
    /// The context of everything this command parses and runs.
    pub fn context(&self) -> Context {
        let mut context = Context::new(self.now_ms, self.server.ids.random());
        context.cluster_time = self.server.clock.next();
        context.interrupt = self.running.interrupt().clone();
        context
    }

    /// As [`Call::context`], with the collation that the command asks for, or the collection's own.
    pub fn context_on(&self, ns: &Namespace, asked: Option<RawDoc<'_>>) -> Result<Context> {
        let mut context = self.context();
        context.collation = self.collation(ns, asked)?;
        Ok(context)
    }

    /// How strings compare in what is asked of a collection or view.
    pub fn collation(&self, ns: &Namespace, asked: Option<RawDoc<'_>>) -> Result<Option<Arc<Collation>>> {
        let asked = asked.map(|doc| Collation::parse(doc, "")).transpose()?;
        let default = match &self.transaction {
            Some(joint) => match Participant::new(joint).collection(ns)? {
                Some(info) => {
                    DefaultCollation { collation: info.options.collation, of_view: info.options.view.is_some() }
                }
                None => DefaultCollation::default(),
            },
            None => self.server.store.default_collation(ns),
        };
        match asked {
            None => Ok(default.collation),
            Some(asked) if default.of_view && asked != default.collation => {
                let message = "Cannot override a view's default collation";
                Err(Error::new(Code::OptionNotSupportedOnView, format!("{message}: {ns}")))
            }
            Some(asked) => Ok(asked),
        }
    }

    /// A store transaction for this command alone, or its part in the client's.
    pub fn begin(&self, context: &Arc<Context>) -> Result<Box<dyn Transaction>> {
        if let Some(joint) = &self.transaction {
            return Ok(Box::new(Participant::new(joint)));
        }
        let begin = Begin { mode: Mode::Auto, want_changes: false, raw: self.raw, context: Arc::clone(context) };
        let Some(snapshot) = &self.snapshot else { return self.server.store.begin(begin) };
        let (transaction, time) = self.server.store.begin_at(begin, snapshot.get())?;
        snapshot.set(Some(time));
        Ok(transaction)
    }

    /// As [`Call::begin_plain`], for a command that deals with stored documents whatever patterns there are.
    pub fn begin_raw(&self) -> Result<Box<dyn Transaction>> {
        let context = Arc::new(self.context());
        self.server.store.begin(Begin { mode: Mode::Auto, want_changes: false, raw: true, context })
    }

    /// As [`Call::begin`], for commands that look at the catalog only.
    pub fn begin_plain(&self) -> Result<Box<dyn Transaction>> {
        self.begin(&Arc::new(self.context()))
    }

    /// Commits what a command has done.
    pub fn commit(&self, transaction: Box<dyn Transaction>) -> Result<CommitToken> {
        transaction.commit()
    }

    /// If the command is a retryable write outside a transaction: what was carried out of it before.
    pub fn retry(&self, request: &Request<'_>, statements: usize) -> Result<Option<Retry>> {
        let (Some(session), Some(number), None) = (&self.session, request.generic.txn_number, &self.transaction) else {
            return Ok(None);
        };
        let store = &self.server.store;
        let remembered = match session.retryable(number, statements > 1)? {
            Seen::First { many } => {
                if many {
                    store.forget(session.id(), 1)?;
                }
                Vec::new()
            }
            Seen::Again => store.remembered(session.id(), number)?,
        };
        Ok(Some(Retry::new(*session.id(), number, remembered)))
    }

    /// The time at which a snapshot was read, for the reply.
    pub fn snapshot_time(&self) -> Option<u64> {
        self.snapshot.as_ref().and_then(Cell::get)
    }

    pub fn check_interrupt(&self) -> Result<()> {
        self.running.interrupt().check()
    }
}
