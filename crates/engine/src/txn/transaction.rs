//! What the store seam asks of a transaction: each method looks at what it is asked about, and goes to the file that does it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use espalier_query::stage::Run;
use espalier_store::{
    Amend, Change, CollStats, CollectionInfo, CollectionOptions, CommitToken, Cursor, DatabaseInfo, Delete, Deleted,
    Find, Follow, Happening, IndexInfo, IndexSpec, Insert, Inserted, Layer, Namespace, Remembered, SessionId,
    Transaction, TransactionId, Update, Updated, Verbosity, ViewDefinition,
};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef};

use super::{Txn, amend, by_ids, create, ddl, delete, insert, keys, read, update};
use crate::backoff::Backoff;
use crate::catalog::Index;
use crate::error::write_conflict;

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

    fn amend(&mut self, ns: &Namespace, id: ValueRef<'_>, change: &mut Amend<'_>) -> Result<bool> {
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
            Some(collection) => keys::taken(&self.view(), collection, doc),
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
        let info = |index: &Arc<Index>| IndexInfo {
            spec: index.spec.clone(),
            building: index.building,
            accesses: index.accesses.load(Ordering::Relaxed),
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
