//! What every layout answers: where the logical documents of a collection live, and how they are read and written.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use espalier_query::expression::Scope;
use espalier_query::update::Description;
use espalier_query::{Context, Filter, Stream};
use espalier_store::{
    CollStats, CollectionOptions, Cursor, Delete, Find, IndexInfo, IndexSpec, Insert, Inserted, Namespace, Transaction,
    Update, Verbosity,
};
use espalier_value::{DocBuf, RawDoc, Result, Value, ValueRef};

use crate::write::Turn;

/// What a migration does next.
#[derive(Clone, Copy)]
pub struct Move<'a> {
    pub id: ValueRef<'a>,
    /// Back to a plain document.
    pub out: bool,
    /// How many documents it may bring along, this one included.
    pub most: usize,
}

impl<'a> Move<'a> {
    /// Only this one, back to a plain document.
    pub fn out(id: ValueRef<'a>) -> Move<'a> {
        Move { id, out: true, most: 1 }
    }
}

/// A pattern that decides where the documents of the collection it is declared on are stored. `at` and `tx` are
/// transactions of the store below; what is done in one `tx` commits together.
pub trait Layout: Debug + Send + Sync {
    /// Makes what it needs beside the collection; does nothing to what is there already.
    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()>;

    /// As [`Layout::prepare`], after the collection was created with it.
    fn after_create(&self, _: &mut dyn Transaction, _: &Namespace) -> Result<()> {
        Ok(())
    }

    /// The layout of another name that this one answers for.
    fn logical(&self, _name: &str) -> Option<Arc<dyn Layout>> {
        None
    }

    /// The other names that it answers for and that have documents: `{name, collection, pattern}`.
    fn names(&self, _: &dyn Transaction, _: &Namespace, _: &Arc<Context>) -> Result<Option<Box<dyn Stream>>> {
        Ok(None)
    }

    /// The collection that a name stands for of which there is no collection.
    fn physical(&self) -> Option<&str> {
        None
    }

    /// Whether derivations can neither be declared beside it nor read its documents.
    fn is_alone(&self) -> bool {
        false
    }

    /// The collections it stores documents in beside the one it is declared on.
    fn beside(&self, ns: &Namespace) -> Vec<Namespace>;

    fn find(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>>;
    /// All documents that match, also those that a find does not show.
    fn find_all(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        self.find(at, ns, find)
    }
    /// As [`Layout::find`], for what a write is to be about.
    fn find_to_write(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        self.find(at, ns, find)
    }
    /// Documents that match but that a find does not show, so that an upsert makes no second one beside them.
    fn hidden(&self, _: &dyn Transaction, _: &Namespace, _: &Find) -> Result<Option<Box<dyn Cursor>>> {
        Ok(None)
    }
    /// Refuses a write of many documents that would be refused for one of them, before any is written.
    fn check_many(&self, _: &dyn Transaction, _: &Namespace, _: &Find) -> Result<()> {
        Ok(())
    }
    fn count(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64>;
    fn distinct(&self, at: &dyn Transaction, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>>;
    fn explain(&self, at: &dyn Transaction, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf>;

    /// As [`Transaction::insert`]; after an error of one document nothing of it is stored.
    fn insert(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
        insert: &Insert,
    ) -> Result<Inserted>;

    /// What inserting this document will write beside it: inserts that write the same take turns.
    fn turn(&self, _: &Namespace, _: RawDoc<'_>) -> Option<Turn> {
        None
    }

    /// An inserted document as it is read back: with the fields that the pattern adds.
    fn inserted(&self, doc: RawDoc<'_>) -> DocBuf {
        DocBuf::from_raw(doc)
    }

    /// Updates the logical document with this `_id` if there is one and the filter lets it through.
    fn update_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>>;

    /// Whether [`Layout::update_at_once`] may do an update like this one.
    fn amends(&self, _: &Update) -> bool {
        false
    }

    /// Does an update of a document, where no pattern but this one and no validator has a say, by rewriting one stored
    /// document, if that is all there is to do. `tx` is outside a transaction. False if nothing was done.
    fn update_at_once(&self, _: &mut dyn Transaction, _: &Namespace, _: ValueRef<'_>, _: &Update) -> Result<bool> {
        Ok(false)
    }

    /// Whether updates like this one, of one document by many clients, are better done together.
    fn combines(&self, _: &Update) -> bool {
        false
    }

    /// As [`Layout::update_one`] for each of them in turn; an inner error is that of one, which then has done nothing.
    /// `None` if they have to be done one by one.
    fn update_combined(
        &self,
        _tx: &mut dyn Transaction,
        _ns: &Namespace,
        _id: ValueRef<'_>,
        _updates: &[&Update],
    ) -> Result<Option<Vec<Result<Option<Written>>>>> {
        Ok(None)
    }

    /// The fields at the top that it writes of itself with updates that it combines.
    fn owned_fields(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether updates that are done together are acknowledged only when they are on disk.
    fn waits_for_disk(&self) -> bool {
        true
    }

    /// Deletes the logical document with this `_id` if there is one and the filter lets it through.
    fn delete_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        delete: &Delete,
    ) -> Result<Option<Written>>;

    fn indexes(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Vec<IndexInfo>> {
        at.indexes(ns)
    }

    /// Deletes those of the logical documents with these `_id`s that the filter lets through, and gives their `_id`s;
    /// `None` if this is better done one by one.
    fn delete_some(
        &self,
        _tx: &mut dyn Transaction,
        _ns: &Namespace,
        _ids: &[Value<'static>],
        _delete: &Delete,
    ) -> Result<Option<Vec<Value<'static>>>> {
        Ok(None)
    }

    /// Updates many at once: what became of those that it did, and the `_id`s of those that must be done one by one;
    /// `None` if all must.
    fn update_some(
        &self,
        _tx: &mut dyn Transaction,
        _ns: &Namespace,
        _ids: &[Value<'static>],
        _update: &Update,
    ) -> Result<Option<(Vec<Done>, Vec<Value<'static>>)>> {
        Ok(None)
    }

    /// Indexes are asked for on logical fields.
    fn create_indexes(&self, tx: &mut dyn Transaction, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)>;
    fn drop_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()>;
    fn set_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()> {
        tx.set_index(ns, name, spec)
    }

    fn coll_stats(&self, at: &dyn Transaction, ns: &Namespace) -> Result<CollStats>;
    /// The pattern's health, for `collStats`.
    fn health(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf>;
    /// Checks the invariant over what is stored.
    fn check(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked>;
    /// Mends what [`Layout::check`] found wrong with one logical document.
    fn repair(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()>;

    /// The filter for stored documents that are not in the layout yet, or (`out`) still are.
    fn unmigrated(&self, out: bool) -> DocBuf;

    /// The collection that holds them.
    fn unmigrated_in(&self, ns: &Namespace, _out: bool) -> Namespace {
        ns.clone()
    }

    /// What is not in the layout yet, or (`out`) still is, in documents whose `_id`s are for [`Layout::migrate`].
    fn left(&self, at: &dyn Transaction, ns: &Namespace, out: bool, context: &Arc<Context>) -> Result<Box<dyn Cursor>> {
        let filter = Filter::parse(self.unmigrated(out).as_raw(), &Scope::default())?;
        at.find(&self.unmigrated_in(ns, out), &Find::new(Arc::new(filter), context.clone()))
    }

    /// How many of them there are.
    fn left_count(&self, at: &dyn Transaction, ns: &Namespace, out: bool, context: &Arc<Context>) -> Result<u64> {
        let filter = Filter::parse(self.unmigrated(out).as_raw(), &Scope::default())?;
        at.count(&self.unmigrated_in(ns, out), &Find::new(Arc::new(filter), context.clone()))
    }

    /// The pattern is being folded back from now on: after this, no transaction that began before writes into what lies
    /// beside the collection. Called again when the server starts meanwhile.
    fn leaving(&self, _tx: &mut dyn Transaction, _ns: &Namespace) -> Result<()> {
        Ok(())
    }

    /// Refuses to be folded back where that cannot be done, before anything is.
    fn check_leaving(&self, _: &dyn Transaction, _: &Namespace) -> Result<()> {
        Ok(())
    }

    /// All that there was is folded back: whether something has come meanwhile that had to be made ready for it first.
    fn leaves_more(&self, _tx: &mut dyn Transaction, _ns: &Namespace) -> Result<bool> {
        Ok(false)
    }

    /// Everything is folded back, and the collection is about to get these options. A layout that has more to do at that
    /// moment gives them to it here.
    fn part(&self, _tx: &mut dyn Transaction, _ns: &Namespace, _: &CollectionOptions) -> Result<()> {
        Ok(())
    }

    /// It is not to be folded back after all. True if nothing has to be brought into it again.
    fn stays(&self, _tx: &mut dyn Transaction, _ns: &Namespace) -> Result<bool> {
        Ok(false)
    }

    /// Collections that go when the collection does, beside those that [`Layout::beside`] names.
    fn parts(&self, _: &dyn Transaction, _: &Namespace) -> Result<Vec<Namespace>> {
        Ok(Vec::new())
    }

    /// As [`Layout::insert`], while the pattern is being folded back: plain documents.
    fn insert_leaving(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
        insert: &Insert,
    ) -> Result<Inserted> {
        tx.insert(ns, docs, insert)
    }

    /// Brings one document into the layout or back, and others along if that is cheaper; false if it was there already.
    fn migrate(&self, tx: &mut dyn Transaction, ns: &Namespace, moved: Move<'_>, context: &Context) -> Result<bool>;

    /// The collections that are to come into this one before the pattern is complete, and the declaration for each.
    fn joining(&self, _: &dyn Transaction, _: &Namespace) -> Result<Vec<(Namespace, DocBuf)>> {
        Ok(Vec::new())
    }

    /// Everything has been brought into the layout. True if the collection itself is not needed any more, and gone.
    fn completed(&self, _: &mut dyn Transaction, _: &Namespace) -> Result<bool> {
        Ok(false)
    }

    /// Whether writes go through it also while it is being folded back. What it stores anew must then be plain.
    fn writes_while_leaving(&self) -> bool {
        false
    }

    /// Whether every document is kept twice for the time being, while it is being folded back or not: then a client that
    /// writes stored documents as they are has to go through it, too.
    fn is_doubled(&self, _leaving: bool) -> bool {
        false
    }

    /// Work that it does of itself from time to time.
    fn periodic(&self) -> Option<&dyn Periodic> {
        None
    }
}

/// Documents that are worked on in one transaction, as a rule: few enough for others not to be kept waiting.
const TOGETHER: usize = 32;

/// Work on documents that become due as time goes by, a few in one transaction.
pub trait Periodic {
    /// The time between two runs.
    fn every(&self) -> Duration;
    /// Documents that a run looks for at a time.
    fn batch(&self) -> u64;
    /// The filter for the documents that are due at this time.
    fn due(&self, now_ms: i64) -> DocBuf;
    /// As [`Periodic::due`], where somebody asks for a run.
    fn due_on_demand(&self, now_ms: i64) -> DocBuf {
        self.due(now_ms)
    }
    /// The collection that they are found in, under the `_id`s of the documents that the work is about.
    fn place(&self, ns: &Namespace) -> Namespace {
        ns.clone()
    }
    /// Does the work for one document if it is still due; false if it is not.
    fn work(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        due: &Filter,
        context: &Context,
    ) -> Result<bool>;
    /// As [`Periodic::work`] for several documents, all in the one transaction or, after an error, none; says how many of
    /// them were still due.
    fn work_on_all(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        ids: &[Value<'static>],
        due: &Filter,
        context: &Context,
    ) -> Result<u64> {
        let mut done = 0;
        for id in ids {
            done += u64::from(self.work(tx, ns, id.or_null(), due, context)?);
        }
        Ok(done)
    }
    /// Documents that are worked on in one transaction: so many, and more if that takes little time. Few enough for those
    /// who write the same ones at the same time.
    fn together(&self) -> RangeInclusive<usize> {
        TOGETHER..=TOGETHER
    }
}

/// The `_id` of a logical document, and what became of it.
pub type Done = (Value<'static>, Written);

/// What became of one logical document.
#[derive(Debug)]
pub struct Written {
    pub modified: bool,
    /// The image that was asked for, whole.
    pub image: Option<DocBuf>,
    /// What change streams tell of an update; `None` if the layout does not know better than that the document changed.
    pub did: Option<Description>,
}

/// What a check of the invariant found.
#[derive(Debug, Default)]
pub struct Checked {
    pub documents: u64,
    /// What is wrong, in words, and the `_id` of the logical document it concerns.
    pub violations: Vec<(String, Value<'static>)>,
}
