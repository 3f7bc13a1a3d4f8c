//! A transaction: reads at one snapshot, collects writes, commits them as one batch.
//!
//! Outside a client's transaction (`Mode::Auto`) every document is its own commit: find it, lock it, look at it
//! again, write it. A conflict is answered by doing that again, so a client never sees one.

mod amend;
mod by_ids;
mod claims;
mod create;
mod ddl;
mod delete;
mod insert;
pub(crate) mod read;
mod target;
mod untouched;
mod update;
pub(crate) mod write;

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use espalier_kv::Snapshot;
use espalier_query::stage::Run;
use espalier_store::{
    Amended, Begin, Change, CollStats, CollectionInfo, CollectionOptions, CommitToken, Cursor, DatabaseInfo, Delete,
    Deleted, Find, Follow, Happening, IndexInfo, IndexSpec, Insert, Inserted, Layer, Mode, Namespace, Remembered,
    SessionId, Transaction, TransactionId, Update, Updated, Verbosity, ViewDefinition,
};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef};

use crate::backoff::Backoff;
use crate::catalog::{Catalog, Collection, Counts, Writers, Writing};
use crate::core::Core;
use crate::error::{too_large, write_conflict};
use crate::history::Teller;
use crate::layout::RecordId;
use crate::locks::Lock;
use crate::view::View;
use claims::{Claims, Gate};
pub(crate) use ddl::put as ddl_put;
use write::Writes;
pub(crate) use write::{check_keys, duplicate_key, id_of, index_keys};

pub(crate) struct Txn {
    core: Arc<Core>,
    begin: Begin,
    /// With own writes laid over it up to `shown`; see [`Txn::view`].
    view: RefCell<View>,
    shown: Cell<usize>,
    catalog: Arc<Catalog>,
    /// What a `Mode::Transaction` will commit.
    writes: Writes,
    /// A statement that failed has taken the transaction's writes with it: there is nothing left to commit.
    lost: bool,
    /// Collections that this transaction creates, by id.
    created: Vec<u64>,
    changes: Vec<Change>,
    last: CommitToken,
    /// Outside a transaction: something was committed that the view does not show.
    behind: bool,
    /// Writes are not told to change streams.
    silent: bool,
    /// Whose transaction this is.
    identity: Option<TransactionId>,
    backoff: Backoff,
}

impl Txn {
    pub fn begin(core: Arc<Core>, begin: Begin) -> Txn {
        let (view, catalog) = core.capture();
        Txn::on(core, begin, view, catalog)
    }

    /// At a snapshot that was taken before.
    pub fn on(core: Arc<Core>, begin: Begin, view: View, catalog: Arc<Catalog>) -> Txn {
        let mut writes = Writes::default();
        if begin.mode == Mode::Transaction {
            writes.gate = Gate::Claims(Claims::new(core.clone()));
        }
        let (changes, created, last) = (Vec::new(), Vec::new(), CommitToken::default());
        Txn {
            core,
            begin,
            view: RefCell::new(view),
            shown: Cell::new(0),
            catalog,
            writes,
            lost: false,
            created,
            changes,
            last,
            behind: false,
            silent: false,
            identity: None,
            backoff: Backoff::default(),
        }
    }

    /// What it sees, its own writes among it. Those are laid over the snapshot only when somebody looks: most transactions
    /// write last, and what nobody reads again need not be copied.
    fn view(&self) -> Ref<'_, View> {
        if self.writes.position() > self.shown.get() {
            self.view.borrow_mut().lay(self.writes.since(self.shown.get()));
            self.shown.set(self.writes.position());
        }
        self.view.borrow()
    }

    /// What it saw when it began.
    fn snapshot(&self) -> Ref<'_, Snapshot> {
        Ref::map(self.view.borrow(), View::snapshot)
    }

    fn is_auto(&self) -> bool {
        self.begin.mode == Mode::Auto
    }

    /// The newest state, for another try.
    fn refresh(&mut self) {
        // A transaction keeps its snapshot.
        if !self.is_auto() {
            return;
        }
        (*self.view.get_mut(), self.catalog) = self.core.capture();
        self.behind = false;
    }

    /// After a conflict outside a transaction: the newest state, and not before others have had their turn.
    fn again(&mut self) {
        if self.is_auto() {
            self.backoff.pause();
        }
        self.refresh();
    }

    /// How changes of the catalog are told.
    fn teller(&self) -> Teller {
        Teller { wall_ms: self.begin.context.now_ms, silent: self.silent }
    }

    /// A view is not to be taken for a collection.
    fn refuse_view(&self, ns: &Namespace) -> Result<()> {
        self.catalog.check(ns)?;
        match self.catalog.get(ns) {
            Some(collection) if collection.options.view.is_some() => Err(ddl::is_a_view(ns)),
            _ => Ok(()),
        }
    }

    /// As [`Txn::again`], with nothing done yet: if the name is now that of a collection with another layer, that must be
    /// asked first.
    fn again_from_the_start(&mut self, ns: &Namespace) -> Result<()> {
        let seen = self.catalog.clone();
        self.again();
        if self.is_auto() && !self.begin.raw && self.core.layer_changed(ns, &seen) {
            return Err(write_conflict());
        }
        Ok(())
    }

    /// Counts a write outside a transaction as under way; it sees what the writes before it have done. A transaction's
    /// own conflicts with a change of the collection when it commits. If a layer has come to the collection since this
    /// began, it must be asked first: that is a conflict before anything was done.
    fn writing(&mut self, ns: &Namespace) -> Result<Option<Writing>> {
        if !self.is_auto() {
            return Ok(None);
        }
        let seen = self.catalog.clone();
        if self.behind {
            self.refresh();
        }
        let writing = self.catalog.get(ns).map(|collection| Writers::begin(&collection.live));
        if !self.begin.raw && self.core.layer_changed(ns, &seen) {
            return Err(write_conflict());
        }
        Ok(writing)
    }

    /// The order of a capped collection is the order of commits, which a transaction does not know yet.
    fn refuse_capped(&self, ns: &Namespace) -> Result<()> {
        match self.catalog.get(ns) {
            Some(collection) if !self.is_auto() && collection.options.capped.is_some() => {
                let message = format!(
                    "Collection '{ns}' is a capped collection. Writes in transactions are not allowed on capped \
                     collections."
                );
                Err(Error::new(Code::OperationNotSupportedInTransaction, message))
            }
            _ => Ok(()),
        }
    }

    fn existing(&self, ns: &Namespace) -> Option<Arc<Collection>> {
        self.catalog.get(ns).cloned()
    }

    /// An empty batch for one commit outside a transaction, or the transaction's own.
    fn take_writes(&mut self) -> Writes {
        let mut writes = if self.is_auto() {
            let mut writes = Writes::new();
            let interrupt = self.begin.context.interrupt.clone();
            writes.gate = Gate::Plain { core: self.core.clone(), interrupt };
            writes
        } else {
            self.lost = true;
            std::mem::take(&mut self.writes).with_memory()
        };
        writes.want_changes = self.begin.want_changes;
        writes.is_read = !self.is_auto();
        writes.notes.silent = self.silent;
        writes.notes.wall_ms = self.begin.context.now_ms;
        if writes.notes.identity != self.identity {
            writes.notes.identity = self.identity.clone();
        }
        writes.key_bytes_max = self.core.options.index_key_bytes_max;
        writes
    }

    /// An event of a layer above, in a batch that is to be committed.
    fn tell(&self, writes: &mut Writes, event: &Happening) {
        let uuid = self.catalog.get(&event.ns).map(|collection| collection.uuid);
        writes.announce(event, uuid);
    }

    /// Gives a transaction's batch back; what was written is visible to it from now on.
    fn keep_writes(&mut self, writes: Writes) -> Result<()> {
        let (bytes, bytes_max) = (writes.len_bytes(), self.core.options.transaction_bytes_max);
        self.writes = writes;
        self.lost = false;
        if bytes > bytes_max { Err(too_large(bytes, bytes_max)) } else { Ok(()) }
    }

    /// Outside a transaction: waits for whoever else is writing the record.
    fn lock<'c>(&self, core: &'c Core, collection: &Collection, record: RecordId) -> Result<Option<Lock<'c>>> {
        match self.begin.mode {
            Mode::Auto => core.locks.lock((collection.id, record), &self.begin.context.interrupt).map(Some),
            Mode::Transaction => Ok(None),
        }
    }

    /// What this transaction itself has done to a collection's counts.
    fn own_counts(&self, collection: &Collection) -> Counts {
        self.writes.delta(collection.id)
    }

    /// After one document was written into `writes`: commits it, or keeps it in a transaction. False on a conflict.
    fn settle(&mut self, writes: Writes, written: Result<()>) -> Result<bool> {
        if !self.is_auto() {
            written?;
            self.keep_writes(writes)?;
            return Ok(true);
        }
        written?;
        self.commit_auto(writes)
    }

    /// Commits what was written for one document or one batch outside a transaction. False on a conflict.
    fn commit_auto(&mut self, writes: Writes) -> Result<bool> {
        if writes.is_empty() {
            return Ok(true);
        }
        let (mut batch, deltas, changes, _gate) = writes.into_parts();
        let committed = self.core.commit(&mut batch, Some(self.view.get_mut()), &deltas);
        write::recycle(batch);
        match committed? {
            Some(token) => {
                self.last = self.last.max(token);
                self.behind = true;
                if self.begin.want_changes {
                    self.changes.extend(changes);
                }
                if deltas.values().any(|delta| delta.collection.options.capped.is_some()) {
                    self.core.appended.raise();
                }
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

impl Transaction for Txn {
    fn find(&self, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        self.refuse_view(ns)?;
        read::find(self, ns, find)
    }

    fn count(&self, ns: &Namespace, find: &Find) -> Result<u64> {
        self.refuse_view(ns)?;
        read::count(self, ns, find)
    }

    fn distinct(&self, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>> {
        self.refuse_view(ns)?;
        read::distinct(self, ns, path, find)
    }

    fn explain(&self, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf> {
        self.refuse_view(ns)?;
        read::explain(self, ns, find, verbosity)
    }

    fn insert(&mut self, ns: &Namespace, docs: &[RawDoc<'_>], insert: &Insert) -> Result<Inserted> {
        self.refuse_view(ns)?;
        self.refuse_capped(ns)?;
        let _writing = self.writing(ns)?;
        insert::insert(self, ns, docs, insert)
    }

    fn update(&mut self, ns: &Namespace, update: &Update) -> Result<Updated> {
        self.refuse_view(ns)?;
        self.refuse_capped(ns)?;
        let _writing = self.writing(ns)?;
        update::update(self, ns, update)
    }

    fn delete(&mut self, ns: &Namespace, delete: &Delete) -> Result<Deleted> {
        self.refuse_view(ns)?;
        self.refuse_capped(ns)?;
        let _writing = self.writing(ns)?;
        delete::delete(self, ns, delete)
    }

    fn delete_by_ids(
        &mut self,
        ns: &Namespace,
        ids: &[Value<'static>],
        wanted: &mut dyn FnMut(RawDoc<'_>) -> Result<bool>,
    ) -> Result<u64> {
        self.refuse_view(ns)?;
        self.refuse_capped(ns)?;
        by_ids::delete(self, ns, ids, wanted)
    }

    fn amend(
        &mut self,
        ns: &Namespace,
        id: ValueRef<'_>,
        change: &mut dyn FnMut(RawDoc<'_>) -> Result<Option<Amended>>,
    ) -> Result<bool> {
        self.refuse_view(ns)?;
        self.refuse_capped(ns)?;
        let _writing = self.writing(ns)?;
        amend::amend(self, ns, id, change)
    }

    fn sort_run(&self, find: &Find) -> Run {
        self.core.sort_run(find)
    }

    fn taken(&self, ns: &Namespace, doc: RawDoc<'_>) -> Result<Option<Error>> {
        match self.catalog.get(ns) {
            Some(collection) => write::taken(&self.view(), collection, doc),
            None => Ok(None),
        }
    }

    fn databases(&self) -> Result<Vec<DatabaseInfo>> {
        crate::stats::databases(&self.catalog, &self.view())
    }

    fn collections(&self, db: &str) -> Result<Vec<CollectionInfo>> {
        let mut found: Vec<_> = self.catalog.in_database(db).map(|c| c.info()).collect();
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn collection(&self, ns: &Namespace) -> Result<Option<CollectionInfo>> {
        self.catalog.check(ns)?;
        Ok(self.catalog.get(ns).map(|c| c.info()))
    }

    fn view(&self, ns: &Namespace) -> Result<Option<ViewDefinition>> {
        self.catalog.check(ns)?;
        Ok(self.catalog.get(ns).and_then(|collection| collection.options.view.clone()))
    }

    fn layer(&self, ns: &Namespace) -> Result<Option<Layer>> {
        self.catalog.check(ns)?;
        Ok(self.catalog.layer(ns).cloned())
    }

    fn reader(&self) -> Box<dyn Transaction> {
        Box::new(Txn {
            core: self.core.clone(),
            begin: self.begin.clone(),
            view: RefCell::new(self.view().clone()),
            shown: Cell::new(0),
            catalog: self.catalog.clone(),
            writes: self.writes.counts_only(),
            // It has nothing of its own to commit.
            lost: !self.is_auto(),
            created: self.created.clone(),
            changes: Vec::new(),
            last: CommitToken::default(),
            behind: false,
            silent: self.silent,
            identity: None,
            backoff: Backoff::default(),
        })
    }

    fn create(&mut self, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
        ddl::create(self, ns, options)
    }

    fn drop_collection(&mut self, ns: &Namespace) -> Result<bool> {
        ddl::drop_collection(self, ns)
    }

    fn rename(&mut self, from: &Namespace, to: &Namespace, drop_target: bool) -> Result<()> {
        ddl::rename(self, from, to, drop_target, &|_, _| Ok(None))
    }

    fn rename_with(&mut self, from: &Namespace, to: &Namespace, drop_target: bool, follow: &Follow<'_>) -> Result<()> {
        ddl::rename(self, from, to, drop_target, follow)
    }

    fn set_options_together(&mut self, all: &[(Namespace, CollectionOptions)], emptied: &Namespace) -> Result<()> {
        ddl::set_options_together(self, all, emptied)
    }

    fn collections_left(&self) -> Result<usize> {
        Ok(self.core.options.collections_max.saturating_sub(self.catalog.len()))
    }

    fn set_options(&mut self, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
        ddl::set_options(self, ns, options)
    }

    fn indexes(&self, ns: &Namespace) -> Result<Vec<IndexInfo>> {
        self.refuse_view(ns)?;
        let Some(collection) = self.catalog.get(ns) else { return Ok(Vec::new()) };
        let info = |index: &Arc<crate::catalog::Index>| IndexInfo {
            spec: index.spec.clone(),
            building: index.building,
            accesses: index.accesses.load(std::sync::atomic::Ordering::Relaxed),
        };
        Ok(collection.indexes.iter().map(info).collect())
    }

    fn create_indexes(&mut self, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        self.refuse_view(ns)?;
        ddl::create_indexes(self, ns, specs)
    }

    fn drop_index(&mut self, ns: &Namespace, name: &str) -> Result<()> {
        self.refuse_view(ns)?;
        ddl::drop_index(self, ns, name)
    }

    fn set_index(&mut self, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()> {
        self.refuse_view(ns)?;
        ddl::set_index(self, ns, name, spec)
    }

    fn coll_stats(&self, ns: &Namespace) -> Result<CollStats> {
        self.refuse_view(ns)?;
        crate::stats::collection(&self.catalog, &self.view(), ns)
    }

    fn validate(&mut self, ns: &Namespace, full: bool, repair: bool) -> Result<DocBuf> {
        self.refuse_view(ns)?;
        crate::validate::validate(self, ns, full, repair)
    }

    fn remember(&mut self, session: &SessionId, txn_number: i64, what: &Remembered) {
        if let Some(record) = crate::retry::record_of(session, txn_number, what) {
            self.writes.remember(&record);
        }
    }

    fn remember_commit(&mut self, session: &SessionId, txn_number: i64) {
        // What only read has nothing to remember.
        if !self.writes.is_empty() || !self.created.is_empty() {
            self.writes.remember(&crate::retry::committed(session, txn_number));
        }
    }

    fn announce(&mut self, event: Happening) -> Result<()> {
        let mut writes = self.take_writes();
        self.tell(&mut writes, &event);
        if self.settle(writes, Ok(()))? { Ok(()) } else { Err(write_conflict()) }
    }

    fn set_silent(&mut self, silent: bool) {
        self.silent = silent;
    }

    fn set_identity(&mut self, identity: TransactionId) {
        self.identity = Some(identity);
    }

    fn take_changes(&mut self) -> Vec<Change> {
        let mut changes = std::mem::take(&mut self.changes);
        // Those of a transaction lie with what it is going to commit.
        changes.append(&mut self.writes.take_changes());
        changes
    }

    fn commit(mut self: Box<Self>) -> Result<CommitToken> {
        if self.lost {
            return Err(Error::new(
                Code::NoSuchTransaction,
                "a statement of this transaction failed: it has been aborted",
            ));
        }
        let writes = std::mem::take(&mut self.writes);
        let committed =
            if self.created.is_empty() { self.commit_auto(writes)? } else { create::commit(&mut self, writes)? };
        if committed {
            return Ok(self.last);
        }
        Err(write_conflict())
    }

    fn abort(self: Box<Self>) {}
}

impl Txn {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn context(&self) -> Arc<espalier_query::Context> {
        self.begin.context.clone()
    }

    pub(crate) fn captured(&self) -> (Ref<'_, View>, &Catalog) {
        (self.view(), &self.catalog)
    }
}

/// What a batch changes about collections, by id.
pub(crate) type Deltas = HashMap<u64, Delta>;

pub(crate) struct Delta {
    pub collection: Arc<Collection>,
    pub counts: Counts,
    /// An index was found to be multikey, which the catalog entry does not say yet.
    pub multikey: bool,
    /// New documents whose record ids are given out by the commit.
    pub fresh: u64,
}

impl Delta {
    pub fn of(collection: Arc<Collection>) -> Delta {
        Delta { collection, counts: Counts::default(), multikey: false, fresh: 0 }
    }

    pub fn is_nothing(&self) -> bool {
        self.counts == Counts::default() && !self.multikey && self.fresh == 0
    }
}
