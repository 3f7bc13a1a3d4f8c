//! What a command gets to work with: the server, the client, its reply, and what it tells about itself for the log.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use espalier_query::{Context, Helpers, Work};
use espalier_store::{Begin, CommitToken, DefaultCollation, Mode, Namespace, Transaction, Updated};
use espalier_value::{Code, Collation, DocBuf, Error, RawDoc, Result};

use crate::auth::Rights;
use crate::client::{Client, Running};
use crate::net::Room;
use crate::reply::DocWriter;
use crate::request::Request;
use crate::server::Server;
use crate::sessions::{CheckedOut, Joint, Lsid, Participant, Retry, Seen};

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
    /// When a request that wanted to wait for changes is to be answered at the latest.
    pub until: Option<Instant>,
    /// Answer this request later.
    pub wait: Option<Wait>,
    /// Close the connection after the reply.
    pub close: bool,
    /// The session it is part of.
    pub lsid: Option<Lsid>,
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
    /// What is looked at for it.
    pub work: Arc<Work>,
    /// What had been looked at when it began: the cursor of a `getMore` goes on counting.
    pub work_before: (u64, u64),
    /// Its share of the memory for replies, until it is sent.
    pub room: Room<'c>,
}

/// When a request is to be looked at again.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// After this long.
    For(Duration),
    /// When feeds may have more to tell than when the notifier stood at `seen`, but not later than `until`.
    Changes { until: Instant, seen: u64 },
}

/// What a command tells about its work, beside what its [`Work`] counts.
#[derive(Default)]
pub struct Told {
    /// Documents in the reply, if it is a command that returns some.
    pub returned: u64,
    pub is_read: bool,
    pub counts: Written,
    /// How long it waited for something to happen, which is no work.
    pub waited: Duration,
    /// The cursor it left open.
    pub cursor_id: Option<i64>,
    pub cursor_exhausted: bool,
    /// The command that opened the cursor of a `getMore`.
    pub origin: Option<DocBuf>,
    /// Each statement of an `update` or `delete` on a database that is profiled.
    pub statements: Vec<Statement>,
}

/// Documents written. `None` where the command does not do such a thing.
#[derive(Clone, Copy, Default)]
pub struct Written {
    pub inserted: Option<u64>,
    pub matched: Option<u64>,
    pub modified: Option<u64>,
    pub upserted: Option<u64>,
    pub deleted: Option<u64>,
}

/// One statement of a write command, for the profiler.
pub struct Statement {
    pub command: DocBuf,
    pub elapsed: Duration,
    pub examined: (u64, u64),
    pub counts: Written,
}

impl Written {
    pub fn updated(done: &Updated) -> Written {
        let upserted = Some(u64::from(done.upserted_id.is_some()));
        Written { matched: Some(done.matched), modified: Some(done.modified), upserted, ..Written::default() }
    }

    /// With the names of the profiler.
    pub fn shown(&self) -> impl Iterator<Item = (&'static str, &u64)> {
        let named = [
            ("nMatched", &self.matched),
            ("nModified", &self.modified),
            ("nUpserted", &self.upserted),
            ("ninserted", &self.inserted),
            ("ndeleted", &self.deleted),
        ];
        named.into_iter().filter_map(|(name, count)| Some((name, count.as_ref()?)))
    }
}

impl Told {
    /// Adds a batch that was read from a cursor.
    pub fn returns(&mut self, returned: u64) {
        self.is_read = true;
        self.returned += returned;
    }
}

impl Call<'_> {
    /// The context of everything this command parses and runs.
    pub fn context(&self) -> Context {
        let mut context = Context::new(self.now_ms, self.server.ids.random());
        context.cluster_time = self.server.clock.next();
        context.interrupt = self.running.interrupt().clone();
        context.work = Arc::clone(&self.work);
        context.helpers = Some(Arc::clone(&self.server.crew) as Arc<dyn Helpers>);
        context
    }

    /// As [`Call::context`], with the collation that the command asks for, or the collection's own.
    pub fn context_on(&self, ns: &Namespace, asked: Option<RawDoc<'_>>) -> Result<Context> {
        let mut context = self.context();
        context.collation = self.collation(ns, asked)?;
        context.collation_of = asked.is_none().then(|| ns.to_string().into());
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

    /// Index entries and documents examined for this command.
    pub fn examined(&self) -> (u64, u64) {
        let (now, before) = (self.work.total(), self.work_before);
        (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1))
    }

    /// Goes on with the work of a cursor, as a `getMore` does.
    pub fn resume(&mut self, context: &Context) {
        self.running.adopt(context.interrupt.clone());
        self.work = Arc::clone(&context.work);
        self.work_before = self.work.total();
        self.running.shows(&self.work);
    }

    /// Notes a statement that has been carried out, if its database is profiled. `began` is when, and what had been
    /// examined before.
    pub fn statement(
        &mut self,
        db: &str,
        began: (Instant, (u64, u64)),
        counts: Written,
        command: impl FnOnce() -> DocBuf,
    ) {
        if !self.server.profiler.is_on(db) {
            return;
        }
        let (since, before) = began;
        let now = self.work.total();
        let examined = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
        let command = command();
        self.told.statements.push(Statement { command, elapsed: since.elapsed(), examined, counts });
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

    /// As [`Call::begin_plain`], for a command that is about logical documents whatever it asks for.
    pub fn begin_logical(&self) -> Result<Box<dyn Transaction>> {
        if self.transaction.is_some() {
            return self.begin_plain();
        }
        let context = Arc::new(self.context());
        self.server.store.begin(Begin { mode: Mode::Auto, want_changes: false, raw: false, context })
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
                    store.forget(session.key(), 1)?;
                }
                Vec::new()
            }
            Seen::Again => store.remembered(session.key(), number)?,
        };
        Ok(Some(Retry::new(*session.key(), number, remembered)))
    }

    /// The time at which a snapshot was read, for the reply.
    pub fn snapshot_time(&self) -> Option<u64> {
        self.snapshot.as_ref().and_then(Cell::get)
    }

    pub fn check_interrupt(&self) -> Result<()> {
        self.running.interrupt().check()
    }
}
