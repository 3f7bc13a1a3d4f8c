//! A transaction of a client that asks for `rawData`: it reads and writes the stored documents as they are. Only where
//! each is kept twice for a while, because its collection becomes a part of another or stops being one (`shared`), a write
//! goes through the pattern: of what that would not see, the copy that is going to take its place would know nothing.
//!
//! Below it is a transaction as of any client, so a pattern that comes or begins to go meanwhile is a conflict before
//! anything is done, and whoever waits for writes that do not know of it waits for these, too.

use std::sync::Arc;

use espalier_query::stage::Run;
use espalier_query::{Context, Stream};
use espalier_store::{
    Amend, Begin, Change, CollStats, CollectionInfo, CollectionOptions, CommitToken, Cursor, DatabaseInfo, Delete,
    Deleted, Find, Follow, Happening, IndexInfo, IndexSpec, Insert, Inserted, Layer, Mode, Namespace, Remembered,
    SessionId, Transaction, TransactionId, Update, Updated, Verbosity, ViewDefinition,
};
use espalier_value::{DocBuf, Error, RawDoc, Result, Value, ValueRef};

use crate::patterned::Shared;
use crate::roles::Roles;
use crate::txn::PatternedTxn;
use crate::write::conflicted;

/// What goes through the pattern is done by the transaction inside, the rest by the one below that.
pub struct RawTxn(PatternedTxn);

impl RawTxn {
    pub(crate) fn new(shared: Arc<Shared>, below: Box<dyn Transaction>, begin: Begin) -> RawTxn {
        RawTxn(PatternedTxn::new(shared, below, begin))
    }

    fn below(&mut self) -> &mut dyn Transaction {
        &mut *self.0.below
    }

    fn is_doubled(&self, ns: &Namespace) -> Result<bool> {
        Roles::are_doubled(&*self.0.below, ns)
    }

    /// Who is to do something to the collection.
    fn on(&mut self, ns: &Namespace) -> Result<&mut dyn Transaction> {
        Ok(if self.is_doubled(ns)? { &mut self.0 } else { self.below() })
    }

    /// Nothing that is kept twice gets another name, or makes room for something else.
    fn check_rename(&self, from: &Namespace, to: &Namespace) -> Result<()> {
        if self.is_doubled(from)? || self.is_doubled(to)? { self.0.check_rename(from, to) } else { Ok(()) }
    }

    /// A write. The store does nothing where a pattern has come or gone since this began, and says so; then it is looked
    /// at again.
    fn write<T>(&mut self, ns: &Namespace, write: impl Fn(&mut dyn Transaction) -> Result<T>) -> Result<T> {
        loop {
            if self.is_doubled(ns)? {
                return write(&mut self.0);
            }
            match write(self.below()) {
                Err(error) if conflicted(&error) && self.0.begin.mode == Mode::Auto => {
                    self.0.renew()?;
                    self.make(ns)?;
                }
                done => return done,
            }
        }
    }

    /// A name that a pattern answers for is that of a collection by itself only if it is made one.
    fn make(&mut self, ns: &Namespace) -> Result<()> {
        let answered = self.0.below.layer(ns)?.is_some_and(|layer| layer.answers_for(ns.collection()).is_some());
        if !answered || self.is_doubled(ns)? {
            return Ok(());
        }
        self.below().create(ns, &CollectionOptions::default())
    }
}

impl Transaction for RawTxn {
    fn find(&self, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        self.0.below.find(ns, find)
    }

    fn count(&self, ns: &Namespace, find: &Find) -> Result<u64> {
        self.0.below.count(ns, find)
    }

    fn distinct(&self, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>> {
        self.0.below.distinct(ns, path, find)
    }

    fn explain(&self, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf> {
        self.0.below.explain(ns, find, verbosity)
    }

    fn sort_run(&self, find: &Find) -> Run {
        self.0.below.sort_run(find)
    }

    fn insert(&mut self, ns: &Namespace, docs: &[RawDoc<'_>], insert: &Insert) -> Result<Inserted> {
        self.write(ns, |tx| tx.insert(ns, docs, insert))
    }

    fn update(&mut self, ns: &Namespace, update: &Update) -> Result<Updated> {
        self.write(ns, |tx| tx.update(ns, update))
    }

    fn delete(&mut self, ns: &Namespace, delete: &Delete) -> Result<Deleted> {
        self.write(ns, |tx| tx.delete(ns, delete))
    }

    fn delete_by_ids(
        &mut self,
        ns: &Namespace,
        ids: &[Value<'static>],
        wanted: &mut dyn FnMut(RawDoc<'_>) -> Result<bool>,
    ) -> Result<u64> {
        self.on(ns)?.delete_by_ids(ns, ids, wanted)
    }

    fn amend(&mut self, ns: &Namespace, id: ValueRef<'_>, change: &mut Amend<'_>) -> Result<bool> {
        self.on(ns)?.amend(ns, id, change)
    }

    fn taken(&self, ns: &Namespace, doc: RawDoc<'_>) -> Result<Option<Error>> {
        self.0.below.taken(ns, doc)
    }

    fn databases(&self) -> Result<Vec<DatabaseInfo>> {
        self.0.below.databases()
    }

    fn collections(&self, db: &str) -> Result<Vec<CollectionInfo>> {
        self.0.below.collections(db)
    }

    fn collection(&self, ns: &Namespace) -> Result<Option<CollectionInfo>> {
        self.0.below.collection(ns)
    }

    fn logical_names(&self, db: &str, context: &Arc<Context>) -> Result<Box<dyn Stream>> {
        self.0.below.logical_names(db, context)
    }

    fn view(&self, ns: &Namespace) -> Result<Option<ViewDefinition>> {
        self.0.below.view(ns)
    }

    fn layer(&self, ns: &Namespace) -> Result<Option<Layer>> {
        self.0.below.layer(ns)
    }

    fn reader(&self) -> Box<dyn Transaction> {
        self.0.below.reader()
    }

    fn create(&mut self, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
        self.on(ns)?.create(ns, options)
    }

    fn drop_collection(&mut self, ns: &Namespace) -> Result<bool> {
        // A copy is made again while what it is a copy of is there; that takes its copies along.
        match self.is_doubled(ns)? && self.0.standing_for(ns)?.is_none() {
            true => self.0.drop_collection(ns),
            false => self.below().drop_collection(ns),
        }
    }

    fn rename(&mut self, from: &Namespace, to: &Namespace, drop_target: bool) -> Result<()> {
        self.check_rename(from, to)?;
        self.below().rename(from, to, drop_target)
    }

    fn rename_with(&mut self, from: &Namespace, to: &Namespace, drop_target: bool, follow: &Follow<'_>) -> Result<()> {
        self.check_rename(from, to)?;
        self.below().rename_with(from, to, drop_target, follow)
    }

    fn set_options(&mut self, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
        self.on(ns)?.set_options(ns, options)
    }

    fn set_options_together(&mut self, all: &[(Namespace, CollectionOptions)], emptied: &Namespace) -> Result<()> {
        self.below().set_options_together(all, emptied)
    }

    fn collections_left(&self) -> Result<usize> {
        self.0.below.collections_left()
    }

    fn indexes(&self, ns: &Namespace) -> Result<Vec<IndexInfo>> {
        self.0.below.indexes(ns)
    }

    fn create_indexes(&mut self, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        self.write(ns, |tx| tx.create_indexes(ns, specs))
    }

    fn drop_index(&mut self, ns: &Namespace, name: &str) -> Result<()> {
        self.on(ns)?.drop_index(ns, name)
    }

    fn set_index(&mut self, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()> {
        self.on(ns)?.set_index(ns, name, spec)
    }

    fn coll_stats(&self, ns: &Namespace) -> Result<CollStats> {
        self.0.below.coll_stats(ns)
    }

    fn validate(&mut self, ns: &Namespace, full: bool, repair: bool) -> Result<DocBuf> {
        self.below().validate(ns, full, repair)
    }

    fn remember(&mut self, session: &SessionId, txn_number: i64, what: &Remembered) {
        self.below().remember(session, txn_number, what);
    }

    fn remember_commit(&mut self, session: &SessionId, txn_number: i64) {
        self.below().remember_commit(session, txn_number);
    }

    fn announce(&mut self, event: Happening) -> Result<()> {
        self.below().announce(event)
    }

    fn set_silent(&mut self, silent: bool) {
        self.below().set_silent(silent);
    }

    fn set_identity(&mut self, identity: TransactionId) {
        self.below().set_identity(identity);
    }

    fn take_changes(&mut self) -> Vec<Change> {
        self.below().take_changes()
    }

    fn commit(self: Box<Self>) -> Result<CommitToken> {
        Box::new(self.0).commit()
    }

    fn abort(self: Box<Self>) {
        Box::new(self.0).abort();
    }
}
