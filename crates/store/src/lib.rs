//! The store seam: what the server (and, later, the patterns) ask of whatever keeps the documents.
//!
//! Document-level and synchronous: begin a transaction at a snapshot; find, insert, update, delete in it; commit or
//! abort. The embedded engine implements it; an existing cluster can, too. Nothing here knows which one is below.

pub mod collection;
pub mod feed;
pub mod find;
pub mod index;
pub mod layer;
pub mod namespace;
pub mod retry;
pub mod write;

use std::sync::Arc;

use espalier_query::stage::{Run, Spill};
use espalier_query::stream::Buffered;
use espalier_query::{Context, Filter, Stream};
use espalier_value::{Collation, DocBuf, Error, RawDoc, Result, Value, ValueRef};

pub use collection::{Capped, CollectionInfo, CollectionOptions, ValidationAction, ValidationLevel, ViewDefinition};
pub use feed::{Event, EventKind, Feed, Happening, Scope, TransactionId, Watch};
pub use find::{Distinct, Find, Hint, Tailable, Verbosity};
pub use index::{IndexInfo, IndexKind, IndexSpec, KeyPart};
pub use layer::Layer;
pub use namespace::{Namespace, NamespaceMap};
pub use retry::{Remembered, RememberedSession, SessionId, Statement, Statements};
pub use write::{Amend, Amended, Beside, Change, Delete, Deleted, Insert, Inserted, Update, Updated, Want};

/// A keeper of documents.
pub trait Store: Send + Sync {
    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>>;

    /// As [`Store::begin`], at a time that has been, or at the newest; gives the time, under which the same can be had
    /// again for a while. `SnapshotTooOld` (239) if it is too long ago. Of a collection that was not the same one then,
    /// every use is `SnapshotUnavailable` (246).
    fn begin_at(&self, begin: Begin, time: Option<u64>) -> Result<(Box<dyn Transaction>, u64)>;

    /// The time of the last commit.
    fn time(&self) -> u64;

    /// The default collation of a collection or view as it stands now, before a command that may depend on it is parsed.
    fn default_collation(&self, ns: &Namespace) -> DefaultCollation;

    /// Blocks until everything up to this commit is on disk; for a command that wrote nothing, until everything is that
    /// it may have seen: "this key is taken" must not be answered for a key that a power cut then takes away.
    fn wait_durable(&self, commit: CommitToken) -> Result<()>;

    /// Writes out what can be written out (`fsync`).
    fn flush(&self) -> Result<()>;

    /// Figures for `serverStatus`, as a document.
    fn status(&self) -> DocBuf;

    /// Where sorts and groups that outgrow their memory go; `None` if nowhere.
    fn spill(&self) -> Option<Arc<dyn Spill>>;

    /// What is remembered of a session's writes with this number.
    fn remembered(&self, session: &SessionId, txn_number: i64) -> Result<Vec<Remembered>>;

    /// Every session of which something is remembered, for a server that starts.
    fn remembered_sessions(&self) -> Result<Vec<RememberedSession>>;

    /// Forgets a session's statements from this one on.
    fn forget(&self, session: &SessionId, from_statement: i32) -> Result<()>;

    /// Everything up to this time would survive a power cut, and is told by a feed.
    fn durable_time(&self) -> u64;

    /// Tells what happens from some moment on; `ChangeStreamHistoryLost` if that moment is no longer kept.
    fn changes(&self, watch: Watch) -> Result<Box<dyn Feed>>;

    /// `listener` is called whenever feeds may have more to tell, on a thread that writers wait for. It takes the
    /// place of the one before.
    fn on_change(&self, listener: Box<dyn Fn() + Send + Sync>);

    /// Long work in the background (index builds), one document each, for `currentOp`.
    fn jobs(&self) -> Vec<DocBuf>;

    /// Asks the job that [`Store::jobs`] shows with this `opid` to end; false if there is none.
    fn kill_job(&self, _op: u64) -> bool {
        false
    }

    /// Does at once what the patterns of a collection do from time to time, and says what was done; `None` if they have
    /// nothing of the kind.
    fn run_pattern(&self, _: &Namespace, _: &Arc<Context>) -> Result<Option<DocBuf>> {
        Ok(None)
    }

    /// Returns when no write outside a transaction that began on an earlier description of the collection is under
    /// way any more. Whoever changes what the collection's [`Layer`] asks of writes calls it before relying on that.
    fn settle(&self, ns: &Namespace, context: &Context) -> Result<()>;
}

/// How strings compare in a collection or view for whoever says nothing else.
#[derive(Clone, Debug, Default)]
pub struct DefaultCollation {
    /// `None` is as bytes.
    pub collation: Option<Arc<Collation>>,
    /// A view's cannot be overridden.
    pub of_view: bool,
}

#[derive(Clone, Debug)]
pub struct Begin {
    pub mode: Mode,
    /// Keep `{collection, before, after}` of every write, for [`Transaction::take_changes`].
    pub want_changes: bool,
    /// Read and write the stored documents as they are, without what a layer above the store makes of them.
    pub raw: bool,
    pub context: Arc<Context>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// One command outside a transaction: each document is atomic, conflicts are retried inside, and a write of many
    /// documents may commit as it goes.
    Auto,
    /// All or nothing, at one snapshot; a conflict is `WriteConflict` (112).
    Transaction,
}

/// A commit's place in the order of commits; the default is "nothing was written".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct CommitToken {
    /// What must be on disk for the commit to last; the store's own.
    pub position: u64,
    /// Its time, as in a BSON timestamp: seconds in the high half, an increment in the low half.
    pub stamp: u64,
}

/// The options that a collection gets because another was renamed, by its name and options; `None`: it keeps them.
pub type Follow<'f> = dyn Fn(&str, &CollectionOptions) -> Result<Option<CollectionOptions>> + 'f;

/// Reads and writes at one snapshot; own writes are visible. Dropped without `commit`, it has not happened.
pub trait Transaction: Send {
    // Reading. A namespace that does not exist reads as empty.

    /// The cursor holds its own snapshot and outlives the transaction.
    fn find(&self, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>>;
    fn count(&self, ns: &Namespace, find: &Find) -> Result<u64>;
    /// Distinct values at a path, arrays unwound, in BSON order of first appearance by index or scan.
    fn distinct(&self, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>>;
    /// The plan in MongoDB's `explain` shape: `queryPlanner`, and `executionStats` if the verbosity asks for it.
    fn explain(&self, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf>;

    /// What a sort that a layer does for this find may use: memory, and then the disk.
    fn sort_run(&self, find: &Find) -> Run {
        Run::new(find.context.clone())
    }

    // Writing. The collection is created if it does not exist.

    /// Inserts documents that already have their `_id` as the first field. An error of one document is reported
    /// with its position; if `ordered`, the documents after it are not tried.
    fn insert(&mut self, ns: &Namespace, docs: &[RawDoc<'_>], insert: &Insert) -> Result<Inserted>;
    fn update(&mut self, ns: &Namespace, update: &Update) -> Result<Updated>;
    fn delete(&mut self, ns: &Namespace, delete: &Delete) -> Result<Deleted>;

    /// Deletes those of the documents with these `_id`s that `wanted` says yes to, in a `Mode::Transaction`, and says how
    /// many. `wanted` gets each that is there as the transaction sees it, in the order of the `_id`s.
    fn delete_by_ids(
        &mut self,
        ns: &Namespace,
        ids: &[Value<'static>],
        wanted: &mut dyn FnMut(RawDoc<'_>) -> Result<bool>,
    ) -> Result<u64> {
        let mut deleted = 0;
        for id in ids {
            let mut condition = DocBuf::new();
            condition.append_doc("_id", |doc| {
                doc.append("$eq", id.or_null());
            });
            let filter = Arc::new(Filter::parse(condition.as_raw(), &Default::default())?);
            let context = Arc::new(Context::default());
            let mut cursor = self.find(ns, &Find::new(filter.clone(), context.clone()))?;
            if cursor.advance()? && wanted(cursor.doc())? {
                drop(cursor);
                deleted += self.delete(ns, &Delete::new(filter, context))?.deleted;
            }
        }
        Ok(deleted)
    }

    /// Rewrites the stored document with this `_id` as `change` says, which is given it as it is and is asked again after a
    /// conflict; `None` leaves it as it is. False if nothing was written. Validators are not asked.
    fn amend(&mut self, ns: &Namespace, id: ValueRef<'_>, change: &mut Amend<'_>) -> Result<bool>;

    /// The `DuplicateKey` (11000) that inserting this document would be, because another of the collection has its `_id` or
    /// a key that is to be unique; nothing is inserted.
    fn taken(&self, ns: &Namespace, doc: RawDoc<'_>) -> Result<Option<Error>>;

    // The catalog.

    fn databases(&self) -> Result<Vec<DatabaseInfo>>;
    fn collections(&self, db: &str) -> Result<Vec<CollectionInfo>>;
    fn collection(&self, ns: &Namespace) -> Result<Option<CollectionInfo>>;
    /// The names of a database that a layer answers for and that have documents, though there are no such collections:
    /// `{name, collection, pattern}`, with the collection that they are in. Cheap to open, and holds no more than one.
    fn logical_names(&self, _db: &str, _context: &Arc<Context>) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Buffered::new(Vec::new())))
    }
    /// The definition of a view; `None` for everything else, at the price of a look-up. Views have no documents
    /// of their own: reading or writing one as a collection is `CommandNotSupportedOnView`.
    fn view(&self, ns: &Namespace) -> Result<Option<ViewDefinition>>;
    /// What a layer above the store has to do with the collection; `None` for almost every one, at the price of a
    /// look-up.
    fn layer(&self, ns: &Namespace) -> Result<Option<Layer>>;
    /// Another handle on what this transaction sees, for reading; it outlives the transaction.
    fn reader(&self) -> Box<dyn Transaction>;
    fn create(&mut self, ns: &Namespace, options: &CollectionOptions) -> Result<()>;
    /// False if there was nothing to drop.
    fn drop_collection(&mut self, ns: &Namespace) -> Result<bool>;
    fn rename(&mut self, from: &Namespace, to: &Namespace, drop_target: bool) -> Result<()>;
    /// As [`Transaction::rename`], within a database; its other collections get the options that `follow` gives for their
    /// name and options in the same commit. For a layer above the store that knows collections by their names.
    fn rename_with(
        &mut self,
        _from: &Namespace,
        _to: &Namespace,
        _drop_target: bool,
        _follow: &Follow<'_>,
    ) -> Result<()> {
        Err(Error::internal("a rename that others follow is for the store itself"))
    }
    /// Replaces the options of a collection (`collMod`).
    fn set_options(&mut self, ns: &Namespace, options: &CollectionOptions) -> Result<()>;
    /// As [`Transaction::set_options`] for several collections in one commit, which takes all documents out of `emptied`,
    /// too. Its indexes stay.
    fn set_options_together(&mut self, all: &[(Namespace, CollectionOptions)], emptied: &Namespace) -> Result<()>;
    /// How many more collections there can be.
    fn collections_left(&self) -> Result<usize>;
    fn indexes(&self, ns: &Namespace) -> Result<Vec<IndexInfo>>;
    /// Builds the indexes; outside a transaction in the background of other clients' work. Returns the number of
    /// indexes before and after.
    fn create_indexes(&mut self, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)>;
    fn drop_index(&mut self, ns: &Namespace, name: &str) -> Result<()>;
    /// Changes what `collMod` may change of an index: `hidden`, `expireAfterSeconds`, ….
    fn set_index(&mut self, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()>;

    // Figures and checks.

    /// Sizes and counts in MongoDB's `collStats` shape (without `ns`, `ok`).
    fn coll_stats(&self, ns: &Namespace) -> Result<CollStats>;
    /// Checks documents and indexes against each other; `repair` mends indexes.
    fn validate(&mut self, ns: &Namespace, full: bool, repair: bool) -> Result<DocBuf>;

    /// Remembers, with the commit, what came of a statement of a retryable write: for a layer that carries it out with
    /// other writes than the client's.
    fn remember(&mut self, session: &SessionId, txn_number: i64, what: &Remembered);
    /// Remembers, with the commit, that this session's transaction committed.
    fn remember_commit(&mut self, session: &SessionId, txn_number: i64);
    /// Announces an event of its own to change streams, in the order of the writes around it. Outside a transaction it
    /// is a commit by itself.
    fn announce(&mut self, event: Happening) -> Result<()>;
    /// From now on writes are not told to change streams, except to raw ones (or are again): for a layer that
    /// announces what they mean.
    fn set_silent(&mut self, silent: bool);
    /// Whose transaction this is, for change streams to tell.
    fn set_identity(&mut self, identity: TransactionId);

    /// The changes made so far, if asked for at the beginning.
    fn take_changes(&mut self) -> Vec<Change>;
    fn commit(self: Box<Self>) -> Result<CommitToken>;
    fn abort(self: Box<Self>);
}

/// The documents of a `find`, projected and in order.
pub trait Cursor: Stream {
    fn keys_examined(&self) -> u64;
    fn docs_examined(&self) -> u64;
    /// `IXSCAN { a: 1 }`, `COLLSCAN`, …: for logs and the profiler.
    fn plan_summary(&self) -> String;
    /// A tailable cursor at its end may see more later.
    fn is_tailable(&self) -> bool {
        false
    }
}

#[derive(Clone, Debug)]
pub struct DatabaseInfo {
    pub name: String,
    pub size_on_disk: u64,
    pub empty: bool,
}

#[derive(Clone, Debug, Default)]
pub struct CollStats {
    pub count: u64,
    /// Bytes of the documents as BSON.
    pub size: u64,
    /// Bytes on disk, compressed.
    pub storage_size: u64,
    pub index_sizes: Vec<(String, u64)>,
    pub index_builds: Vec<String>,
    pub capped: Option<Capped>,
    /// The health of the patterns declared on the collection.
    pub patterns: Option<DocBuf>,
}

/// A parsed filter that many parts share.
pub type SharedFilter = Arc<Filter>;
