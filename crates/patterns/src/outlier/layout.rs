//! The outlier pattern as a layout.

use espalier_query::Context;
use espalier_store::{
    CollStats, CollectionOptions, Cursor, Delete, Find, IndexSpec, Insert, Inserted, Namespace, Transaction, Update,
    Verbosity,
};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef};

use super::Outlier;
use crate::beside;
use crate::bson::id_of;
use crate::declare::owned_by;
use crate::layout::{Checked, Layout, Move, Written};
use crate::stored;

impl Layout for Outlier {
    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        let overflow = self.overflow(ns);
        let options: CollectionOptions = owned_by(tx, &overflow, ns, "outlier")?;
        if tx.collection(&overflow)?.is_none() {
            self.refuse_used(tx, ns)?;
        }
        tx.create(&overflow, &options)?;
        let mut specs = self.own_indexes()?;
        for index in tx.indexes(ns)? {
            specs.extend(self.for_batches(&index.spec)?);
        }
        beside::create_indexes(tx, &overflow, specs)
    }

    fn beside(&self, ns: &Namespace) -> Vec<Namespace> {
        vec![self.overflow(ns)]
    }

    fn find(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        self.find_logical(at, ns, find)
    }

    fn count(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
        self.count_logical(at, ns, find)
    }

    fn distinct(&self, at: &dyn Transaction, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>> {
        self.distinct_logical(at, ns, path, find)
    }

    fn explain(&self, at: &dyn Transaction, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf> {
        self.explain_logical(at, ns, find, verbosity)
    }

    fn insert(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
        insert: &Insert,
    ) -> Result<Inserted> {
        self.insert_all(tx, ns, docs, insert)
    }

    fn inserted(&self, doc: RawDoc<'_>) -> DocBuf {
        self.as_inserted(doc)
    }

    fn update_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        self.update(tx, ns, id, update)
    }

    fn combines(&self, update: &Update) -> bool {
        self.may_combine(update)
    }

    fn update_combined(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        updates: &[&Update],
    ) -> Result<Option<Vec<Result<Option<Written>>>>> {
        self.append_together(tx, ns, id, updates)
    }

    fn owned_fields(&self) -> Vec<&str> {
        self.owned().to_vec()
    }

    fn delete_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        delete: &Delete,
    ) -> Result<Option<Written>> {
        self.delete(tx, ns, id, delete)
    }

    fn create_indexes(&self, tx: &mut dyn Transaction, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        self.create_logical_indexes(tx, ns, specs)
    }

    fn drop_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        self.drop_logical_index(tx, ns, name)
    }

    fn coll_stats(&self, at: &dyn Transaction, ns: &Namespace) -> Result<CollStats> {
        at.coll_stats(ns)
    }

    fn health(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        self.health_of(at, ns)
    }

    fn check(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked> {
        self.check_all(at, ns, context)
    }

    fn repair(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        self.repair_one(tx, ns, id)
    }

    fn unmigrated(&self, out: bool) -> DocBuf {
        let mut filter = DocBuf::new();
        filter.append_doc(&self.batches, |doc| {
            doc.append("$exists", out);
        });
        filter
    }

    fn migrate(&self, tx: &mut dyn Transaction, ns: &Namespace, moved: Move<'_>, context: &Context) -> Result<bool> {
        if moved.out { self.move_out(tx, ns, moved.id) } else { self.move_in(tx, ns, moved.id, context) }
    }
}

impl Outlier {
    /// The number of batches tells a document that is in the pattern from one that is not yet: none may have it before.
    fn refuse_used(&self, at: &dyn Transaction, ns: &Namespace) -> Result<()> {
        let used = stored::filter(&self.unmigrated(true))?;
        let Some(doc) = stored::first(at, ns, &stored::query(used))? else { return Ok(()) };
        Err(Error::new(
            Code::InvalidOptions,
            format!(
                "patterns: outlier.batches: the document with _id {} of {ns} has the field '{}' already; remove it from the \
                 documents, or give another name",
                id_of(doc.as_raw()),
                self.batches
            ),
        ))
    }
}
