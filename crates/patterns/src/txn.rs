//! A transaction on a store with patterns: what concerns no pattern goes down as it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use espalier_query::{Context, Stream};
use espalier_store::{
    Amend, Begin, Change, CollStats, CollectionInfo, CollectionOptions, CommitToken, Cursor, DatabaseInfo, Delete,
    Deleted, Find, Happening, IndexInfo, IndexSpec, Insert, Inserted, Layer, Mode, Namespace, Remembered, SessionId,
    Transaction, TransactionId, Update, Updated, Verbosity, ViewDefinition,
};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef};

use crate::chained::Chained;
use crate::declare;
use crate::derive::{self, worker};
use crate::layout::Layout;
use crate::patterned::Shared;
use crate::roles::{Declarations, Roles};
use crate::schedule;
use crate::write::conflicted;

pub struct PatternedTxn {
    pub(crate) shared: Arc<Shared>,
    pub(crate) below: Box<dyn Transaction>,
    pub(crate) begin: Begin,
    /// The last commit made beside `below`.
    pub(crate) last: CommitToken,
    /// Databases in which something is left to be done after the commit.
    pub(crate) marked: BTreeSet<Box<str>>,
}

impl PatternedTxn {
    pub(crate) fn new(shared: Arc<Shared>, below: Box<dyn Transaction>, begin: Begin) -> PatternedTxn {
        PatternedTxn { shared, below, begin, last: CommitToken::default(), marked: BTreeSet::new() }
    }

    pub(crate) fn layout(&self, ns: &Namespace) -> Result<Option<Arc<dyn Layout>>> {
        Ok(Roles::of(&*self.below, ns)?.and_then(|roles| roles.layout.clone()))
    }

    /// Whether a write is on logical documents; an error if clients may not write there.
    fn is_logical(&self, ns: &Namespace) -> Result<bool> {
        let Some(roles) = Roles::of(&*self.below, ns)? else { return Ok(false) };
        roles.check_writable(ns)?;
        Ok(roles.is_logical())
    }

    /// A write that goes down as it is. If a pattern was declared on the collection meanwhile, the store has done nothing
    /// and says so; then it is a write on logical documents.
    fn pass<T>(
        &mut self,
        ns: &Namespace,
        plain: impl Fn(&mut dyn Transaction) -> Result<T>,
        logical: impl Fn(&mut PatternedTxn) -> Result<T>,
    ) -> Result<T> {
        loop {
            if self.is_logical(ns)? {
                return logical(self);
            }
            match plain(&mut *self.below) {
                Err(error) if conflicted(&error) && self.begin.mode == Mode::Auto => self.renew()?,
                done => return done,
            }
        }
    }

    /// Goes on with the newest state, keeping what has been committed.
    pub(crate) fn renew(&mut self) -> Result<()> {
        let fresh = self.shared.below.begin(self.begin.clone())?;
        let old = std::mem::replace(&mut self.below, fresh);
        self.last = self.last.max(old.commit()?);
        Ok(())
    }

    /// Lets the scheduler know of a collection whose pattern may have work of its own.
    pub(crate) fn plan_runs(&self, ns: &Namespace) -> Result<()> {
        if let Some(layout) = self.layout(ns)?
            && let Some(periodic) = layout.periodic()
        {
            return schedule::plan(&self.shared, ns, periodic.every());
        }
        Ok(())
    }

    /// The collection that a name stands for of which there is no collection.
    pub(crate) fn standing_for(&self, ns: &Namespace) -> Result<Option<Namespace>> {
        let layout = self.layout(ns)?;
        Ok(layout.and_then(|layout| layout.physical().map(|physical| Namespace::new(ns.db(), physical))))
    }

    /// Refuses what a name cannot have done to it that stands for a part of a collection.
    pub(crate) fn refuse_part(&self, ns: &Namespace, what: &str) -> Result<()> {
        let Some(physical) = self.standing_for(ns)? else { return Ok(()) };
        let message = format!("{what} cannot be done to {ns}, which is a part of {physical} (pattern 'shared')");
        Err(Error::new(Code::CommandNotSupported, message))
    }

    /// Refuses to take a collection, or what it has, away from the pattern that needs it.
    pub(crate) fn check_free(&self, ns: &Namespace) -> Result<()> {
        match Roles::of(&*self.below, ns)? {
            Some(roles) => roles.check_writable(ns),
            None => Ok(()),
        }
    }
}

impl Transaction for PatternedTxn {
    fn find(&self, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        match self.layout(ns)? {
            // Which documents are the same is known of the logical ones only.
            Some(layout) => layout.find(&*self.below, ns, &Find { distinct: None, ..find.clone() }),
            None => self.below.find(ns, find),
        }
    }

    fn count(&self, ns: &Namespace, find: &Find) -> Result<u64> {
        match self.layout(ns)? {
            Some(layout) => layout.count(&*self.below, ns, find),
            None => self.below.count(ns, find),
        }
    }

    fn distinct(&self, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>> {
        match self.layout(ns)? {
            Some(layout) => layout.distinct(&*self.below, ns, path, find),
            None => self.below.distinct(ns, path, find),
        }
    }

    fn explain(&self, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf> {
        match self.layout(ns)? {
            Some(layout) => layout.explain(&*self.below, ns, &Find { distinct: None, ..find.clone() }, verbosity),
            None => self.below.explain(ns, find, verbosity),
        }
    }

    fn insert(&mut self, ns: &Namespace, docs: &[RawDoc<'_>], insert: &Insert) -> Result<Inserted> {
        self.pass(ns, |below| below.insert(ns, docs, insert), |txn| txn.insert_logical(ns, docs, insert))
    }

    fn update(&mut self, ns: &Namespace, update: &Update) -> Result<Updated> {
        self.pass(ns, |below| below.update(ns, update), |txn| txn.update_logical(ns, update))
    }

    fn delete(&mut self, ns: &Namespace, delete: &Delete) -> Result<Deleted> {
        self.pass(ns, |below| below.delete(ns, delete), |txn| txn.delete_logical(ns, delete))
    }

    fn databases(&self) -> Result<Vec<DatabaseInfo>> {
        self.below.databases()
    }

    fn collections(&self, db: &str) -> Result<Vec<CollectionInfo>> {
        self.below.collections(db)
    }

    fn logical_names(&self, db: &str, context: &Arc<Context>) -> Result<Box<dyn Stream>> {
        let mut all: Vec<Box<dyn Stream>> = Vec::new();
        for info in self.below.collections(db)? {
            if !info.options.layer.as_ref().is_some_and(|layer| layer.has_names()) {
                continue;
            }
            let ns = Namespace::new(db, &info.name);
            // While documents are brought in, the names do not answer yet.
            let roles = Roles::of(&*self.below, &ns)?.filter(|roles| !roles.entering);
            if let Some(layout) = roles.and_then(|roles| roles.layout.clone()) {
                all.extend(layout.names(&*self.below, &ns, context)?);
            }
        }
        Ok(Box::new(Chained::new(all)))
    }

    fn collection(&self, ns: &Namespace) -> Result<Option<CollectionInfo>> {
        let there = self.below.collection(ns)?;
        if there.is_some() {
            return Ok(there);
        }
        let Some(physical) = self.standing_for(ns)? else { return Ok(None) };
        let info = self.below.collection(&physical)?;
        let named = |info: CollectionInfo| CollectionInfo {
            name: ns.collection().to_string(),
            uuid: info.uuid,
            options: CollectionOptions::default(),
        };
        Ok(info.map(named))
    }

    fn view(&self, ns: &Namespace) -> Result<Option<ViewDefinition>> {
        self.below.view(ns)
    }

    fn layer(&self, ns: &Namespace) -> Result<Option<Layer>> {
        self.below.layer(ns)
    }

    fn reader(&self) -> Box<dyn Transaction> {
        Box::new(PatternedTxn::new(self.shared.clone(), self.below.reader(), self.begin.clone()))
    }

    fn create(&mut self, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
        if options.listed.as_raw().elem("patterns").is_some() {
            self.refuse_in_transaction("create with patterns")?;
            self.refuse_part(ns, "create with options")?;
            self.unless_it_came(|txn| declare::create(&mut *txn.below, ns, options))?;
            self.settle_sources(ns)?;
            derive::delayed::begin_now(&self.shared, ns, false, &self.begin.context)?;
            worker::watch(&self.shared, ns)?;
            self.take_in(ns)?;
            return self.plan_runs(ns);
        }
        if self.standing_for(ns)?.is_some() {
            // It is there, as far as anybody can tell; options of its own it cannot have.
            return match options.listed.is_empty() {
                true => Ok(()),
                false => self.refuse_part(ns, "create with options"),
            };
        }
        self.below.create(ns, options)
    }

    fn drop_collection(&mut self, ns: &Namespace) -> Result<bool> {
        self.check_free(ns)?;
        if self.standing_for(ns)?.is_some() {
            let delete = crate::stored::delete_all(&self.begin.context);
            return Ok(self.delete_logical(ns, &delete)?.deleted > 0);
        }
        if self.is_watched(ns)? {
            // Those who watch it are told of every document; the collection stays, empty, for them to go on watching.
            let delete = crate::stored::delete_all(&self.begin.context);
            self.delete_logical(ns, &delete)?;
            return Ok(true);
        }
        let layout = self.layout(ns)?;
        let derived = self.derived(ns)?;
        let parts = layout.as_ref().map(|layout| layout.parts(&*self.below, ns)).transpose()?.unwrap_or_default();
        let dropped = self.below.drop_collection(ns)?;
        derive::unregister(&mut *self.below, ns, &derived, &[])?;
        derive::delayed::forget(&mut *self.below, ns, &derived, &[])?;
        for beside in layout.map(|layout| layout.beside(ns)).unwrap_or_default().iter().chain(&parts) {
            self.below.drop_collection(beside)?;
        }
        Ok(dropped)
    }

    fn rename(&mut self, from: &Namespace, to: &Namespace, drop_target: bool) -> Result<()> {
        self.check_rename(from, to)?;
        match Roles::of(&*self.below, from)? {
            Some(roles) => self.rename_known(from, to, drop_target, &roles),
            None => self.below.rename(from, to, drop_target),
        }
    }

    fn set_options(&mut self, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
        self.check_free(ns)?;
        self.refuse_part(ns, "collMod")?;
        let old = self.below.collection(ns)?.map(|info| info.options.listed).unwrap_or_default();
        let options = &derive::with_watchers_of(old.as_raw(), options);
        let concerned = |listed: RawDoc<'_>| listed.elem("patterns").is_some();
        if !concerned(old.as_raw()) && !concerned(options.listed.as_raw()) {
            return self.below.set_options(ns, options);
        }
        self.refuse_in_transaction("collMod with patterns")?;
        let before = self.derived(ns)?;
        let done = self.change_patterns(ns, old.as_raw(), options);
        // Whatever came of it: nobody is to be watched for a pattern that is not there.
        let left = self.derived(ns)?;
        let mut gone = before;
        gone.extend(Declarations::read(options.listed.as_raw(), ns.collection()).derived);
        derive::unregister(&mut *self.below, ns, &gone, &left)?;
        derive::delayed::forget(&mut *self.below, ns, &gone, &left)?;
        done?;
        self.take_in(ns)
    }

    fn set_options_together(&mut self, all: &[(Namespace, CollectionOptions)], emptied: &Namespace) -> Result<()> {
        self.below.set_options_together(all, emptied)
    }

    fn collections_left(&self) -> Result<usize> {
        self.below.collections_left()
    }

    fn indexes(&self, ns: &Namespace) -> Result<Vec<IndexInfo>> {
        match self.layout(ns)? {
            Some(layout) => layout.indexes(&*self.below, ns),
            None => self.below.indexes(ns),
        }
    }

    fn create_indexes(&mut self, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        match self.layout(ns)? {
            Some(layout) => layout.create_indexes(&mut *self.below, ns, specs),
            None => {
                self.check_free(ns)?;
                self.below.create_indexes(ns, specs)
            }
        }
    }

    fn drop_index(&mut self, ns: &Namespace, name: &str) -> Result<()> {
        match self.layout(ns)? {
            Some(layout) => layout.drop_index(&mut *self.below, ns, name),
            None => {
                self.check_free(ns)?;
                self.below.drop_index(ns, name)
            }
        }
    }

    fn set_index(&mut self, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()> {
        match self.layout(ns)? {
            Some(layout) => layout.set_index(&mut *self.below, ns, name, spec),
            None => {
                self.check_free(ns)?;
                self.below.set_index(ns, name, spec)
            }
        }
    }

    fn taken(&self, ns: &Namespace, doc: RawDoc<'_>) -> Result<Option<Error>> {
        self.below.taken(ns, doc)
    }

    fn coll_stats(&self, ns: &Namespace) -> Result<CollStats> {
        self.stats(ns)
    }

    fn validate(&mut self, ns: &Namespace, full: bool, repair: bool) -> Result<DocBuf> {
        if let Some(physical) = self.standing_for(ns)? {
            if repair {
                self.refuse_part(ns, "validate with repair")?;
            }
            return self.check_part(ns, &physical);
        }
        let report = self.below.validate(ns, full, repair)?;
        match Roles::of(&*self.below, ns)? {
            Some(roles) if roles.layout.is_some() || !roles.derived.is_empty() => {
                self.check_patterns(ns, &roles, report, repair)
            }
            _ => Ok(report),
        }
    }

    fn remember(&mut self, session: &SessionId, txn_number: i64, what: &Remembered) {
        self.below.remember(session, txn_number, what);
    }

    fn remember_commit(&mut self, session: &SessionId, txn_number: i64) {
        self.below.remember_commit(session, txn_number);
    }

    /// For layers below alone: a logical document is not rewritten behind its pattern's back.
    fn amend(&mut self, ns: &Namespace, id: ValueRef<'_>, change: &mut Amend<'_>) -> Result<bool> {
        match Roles::of(&*self.below, ns)? {
            Some(roles) if roles.is_logical() => {
                Err(Error::internal(format!("{ns} has patterns, and its documents are not to be amended")))
            }
            _ => self.below.amend(ns, id, change),
        }
    }

    fn announce(&mut self, event: Happening) -> Result<()> {
        self.below.announce(event)
    }

    fn set_silent(&mut self, silent: bool) {
        self.below.set_silent(silent);
    }

    fn set_identity(&mut self, identity: TransactionId) {
        self.below.set_identity(identity);
    }

    fn take_changes(&mut self) -> Vec<Change> {
        self.below.take_changes()
    }

    fn commit(self: Box<Self>) -> Result<CommitToken> {
        let PatternedTxn { shared, below, last, marked, .. } = *self;
        let token = below.commit()?.max(last);
        marked.iter().try_for_each(|db| worker::wake(&shared, db))?;
        Ok(token)
    }

    fn abort(self: Box<Self>) {
        self.below.abort();
    }
}
