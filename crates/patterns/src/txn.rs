//! A transaction on a store with patterns: what concerns no pattern goes down as it is.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_store::{
    Begin, Change, CollStats, CollectionInfo, CollectionOptions, CommitToken, Cursor, DatabaseInfo, Delete, Deleted,
    Find, Happening, IndexInfo, IndexSpec, Insert, Inserted, Layer, Mode, Namespace, Remembered, SessionId,
    Transaction, TransactionId, Update, Updated, Verbosity, ViewDefinition,
};
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawDoc, Result, Value, ValueRef};

use crate::declare::{self, Step};
use crate::layout::Layout;
use crate::patterned::Shared;
use crate::roles::Roles;
use crate::schedule;
use crate::write::conflicted;

pub struct PatternedTxn {
    pub(crate) shared: Arc<Shared>,
    pub(crate) below: Box<dyn Transaction>,
    pub(crate) begin: Begin,
    /// The last commit made beside `below`.
    pub(crate) last: CommitToken,
}

impl PatternedTxn {
    pub(crate) fn new(shared: Arc<Shared>, below: Box<dyn Transaction>, begin: Begin) -> PatternedTxn {
        PatternedTxn { shared, below, begin, last: CommitToken::default() }
    }

    fn layout(&self, ns: &Namespace) -> Result<Option<Arc<dyn Layout>>> {
        Ok(Roles::of(&*self.below, ns)?.and_then(|roles| roles.layout.clone()))
    }

    /// Whether a write is on logical documents; an error if clients may not write there.
    fn is_logical(&self, ns: &Namespace) -> Result<bool> {
        let Some(roles) = Roles::of(&*self.below, ns)? else { return Ok(false) };
        roles.check_writable(ns)?;
        Ok(roles.layout.is_some())
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
    fn renew(&mut self) -> Result<()> {
        let fresh = self.shared.below.begin(self.begin.clone())?;
        let old = std::mem::replace(&mut self.below, fresh);
        self.last = self.last.max(old.commit()?);
        Ok(())
    }

    /// Lets the scheduler know of a collection whose pattern may have work of its own.
    fn plan_runs(&self, ns: &Namespace) -> Result<()> {
        if let Some(layout) = self.layout(ns)?
            && let Some(periodic) = layout.periodic()
        {
            return schedule::plan(&self.shared, ns, periodic.every());
        }
        Ok(())
    }

    /// The collection that a name stands for of which there is no collection.
    fn standing_for(&self, ns: &Namespace) -> Result<Option<Namespace>> {
        let layout = self.layout(ns)?;
        Ok(layout.and_then(|layout| layout.physical().map(|physical| Namespace::new(ns.db(), physical))))
    }

    /// Refuses what a name cannot have done to it that stands for a part of a collection.
    fn refuse_part(&self, ns: &Namespace, what: &str) -> Result<()> {
        let Some(physical) = self.standing_for(ns)? else { return Ok(()) };
        let message = format!("{what} cannot be done to {ns}, which is a part of {physical} (pattern 'shared')");
        Err(Error::new(Code::IllegalOperation, message))
    }

    /// Refuses to take a collection away from the pattern that needs it.
    fn check_free(&self, ns: &Namespace) -> Result<()> {
        match Roles::of(&*self.below, ns)? {
            Some(roles) => roles.check_writable(ns),
            None => Ok(()),
        }
    }
}

impl Transaction for PatternedTxn {
    fn find(&self, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        match self.layout(ns)? {
            Some(layout) => layout.find(&*self.below, ns, find),
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
            Some(layout) => layout.explain(&*self.below, ns, find, verbosity),
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
            declare::create(&mut *self.below, ns, options)?;
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
            let delete = Delete {
                filter: Arc::new(Filter::empty()),
                multi: true,
                sort: None,
                hint: None,
                want_image: false,
                projection: None,
                statement: None,
                context: self.begin.context.clone(),
            };
            return Ok(self.delete_logical(ns, &delete)?.deleted > 0);
        }
        let layout = self.layout(ns)?;
        let dropped = self.below.drop_collection(ns)?;
        for beside in layout.map(|layout| layout.beside(ns)).unwrap_or_default() {
            self.below.drop_collection(&beside)?;
        }
        Ok(dropped)
    }

    fn rename(&mut self, from: &Namespace, to: &Namespace, drop_target: bool) -> Result<()> {
        self.check_free(from)?;
        self.check_free(to)?;
        self.refuse_part(from, "a rename")?;
        self.refuse_part(to, "a rename")?;
        if self.below.layer(from)?.is_some_and(|layer| layer.has_names()) {
            let message = format!("{from} cannot be renamed: the pattern 'shared' is declared on it by its name");
            return Err(Error::new(Code::IllegalOperation, message));
        }
        let layout = self.layout(from)?;
        if layout.is_some() && from.db() != to.db() {
            let message = format!("{from} has patterns and cannot move to another database");
            return Err(Error::new(Code::IllegalOperation, message));
        }
        if self.layout(to)?.is_some() {
            let message =
                format!("{to} has patterns, which a rename onto it would take away; drop it first, or use $merge");
            return Err(Error::new(Code::IllegalOperation, message));
        }
        self.below.rename(from, to, drop_target)?;
        self.plan_runs(to)?;
        for beside in layout.map(|layout| layout.beside(from)).unwrap_or_default() {
            if let Some(info) = self.below.collection(&beside)? {
                let options = declare::owned_anew(&info.options, to);
                self.below.set_options(&beside, &options)?;
            }
        }
        Ok(())
    }

    fn set_options(&mut self, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
        self.refuse_part(ns, "collMod")?;
        let old = self.below.collection(ns)?.map(|info| info.options.listed).unwrap_or_default();
        let concerned = |listed: RawDoc<'_>| listed.elem("patterns").is_some();
        if !concerned(old.as_raw()) && !concerned(options.listed.as_raw()) {
            return self.below.set_options(ns, options);
        }
        self.refuse_in_transaction("collMod with patterns")?;
        match declare::change(&mut *self.below, ns, old.as_raw(), options)? {
            Step::Set(options) => {
                self.below.set_options(ns, &options)?;
                self.plan_runs(ns)
            }
            Step::Migrate(options, direction) => {
                self.below.set_options(ns, &options)?;
                self.renew()?;
                self.shared.below.wait_durable(self.last)?;
                let job = self.shared.jobs.start(&self.shared, ns, direction)?;
                job.wait(&self.begin.context)?;
                self.renew()?;
                self.plan_runs(ns)
            }
        }
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
            None => self.below.create_indexes(ns, specs),
        }
    }

    fn drop_index(&mut self, ns: &Namespace, name: &str) -> Result<()> {
        match self.layout(ns)? {
            Some(layout) => layout.drop_index(&mut *self.below, ns, name),
            None => self.below.drop_index(ns, name),
        }
    }

    fn set_index(&mut self, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()> {
        match self.layout(ns)? {
            Some(layout) => layout.set_index(&mut *self.below, ns, name, spec),
            None => self.below.set_index(ns, name, spec),
        }
    }

    fn taken(&self, ns: &Namespace, doc: RawDoc<'_>) -> Result<Option<Error>> {
        self.below.taken(ns, doc)
    }

    fn coll_stats(&self, ns: &Namespace) -> Result<CollStats> {
        match self.layout(ns)? {
            Some(layout) => {
                let mut stats = layout.coll_stats(&*self.below, ns)?;
                let mut health = layout.health(&*self.below, ns)?;
                if let Some(run) = self.shared.jobs.schedule.last(ns) {
                    health.append("lastRun", &run);
                }
                stats.patterns = Some(health);
                Ok(stats)
            }
            None => self.below.coll_stats(ns),
        }
    }

    fn validate(&mut self, ns: &Namespace, full: bool, repair: bool) -> Result<DocBuf> {
        self.refuse_part(ns, "validate")?;
        let report = self.below.validate(ns, full, repair)?;
        match self.layout(ns)? {
            Some(layout) => self.check_layout(ns, &*layout, report, repair),
            None => Ok(report),
        }
    }

    fn remember(&mut self, session: &SessionId, txn_number: i64, what: &Remembered) {
        self.below.remember(session, txn_number, what);
    }

    fn remember_commit(&mut self, session: &SessionId, txn_number: i64) {
        self.below.remember_commit(session, txn_number);
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
        let PatternedTxn { below, last, .. } = *self;
        Ok(below.commit()?.max(last))
    }

    fn abort(self: Box<Self>) {
        self.below.abort();
    }
}

impl PatternedTxn {
    fn refuse_in_transaction(&self, what: &str) -> Result<()> {
        if self.begin.mode == Mode::Auto {
            return Ok(());
        }
        let message = format!("{what} cannot be run in a multi-document transaction");
        Err(Error::new(Code::OperationNotSupportedInTransaction, message))
    }

    /// Adds what a pattern's check found to the store's own report; mends it if asked to.
    fn check_layout(&mut self, ns: &Namespace, layout: &dyn Layout, report: DocBuf, repair: bool) -> Result<DocBuf> {
        let context = self.begin.context.clone();
        let mut found = layout.check(&*self.below, ns, &context)?;
        let mut repaired = 0i64;
        if repair && !found.violations.is_empty() {
            let ids: Vec<Value<'static>> = found.violations.iter().map(|(_, id)| id.clone()).collect();
            for id in ids {
                self.repair_one(ns, id.or_null())?;
                repaired += 1;
            }
            self.renew()?;
            found = layout.check(&*self.below, ns, &context)?;
        }
        let clean = found.violations.is_empty();
        let mut out = DocBuf::new();
        for elem in report.as_raw() {
            match (elem.name(), elem.value()) {
                ("valid", ValueRef::Bool(valid)) => out.append("valid", valid && clean),
                ("errors", ValueRef::Array(errors)) => {
                    let mut all: ArrayBuf = errors.iter().collect();
                    found.violations.iter().for_each(|(text, _)| {
                        all.push(text.as_str());
                    });
                    out.append("errors", &all)
                }
                _ => out.append_elem(elem),
            };
        }
        out.append_doc("patterns", |doc| {
            doc.append("checked", found.documents as i64)
                .append("violations", found.violations.len() as i64)
                .append("repaired", repaired);
        });
        Ok(out)
    }
}
