//! The approximate pattern as a layout.

use espalier_query::Context;
use espalier_store::{
    CollStats, CollectionOptions, Cursor, Delete, Find, IndexSpec, Insert, Inserted, Namespace, Transaction, Update,
    Verbosity, Want,
};
use espalier_value::{ArrayBuf, DocBuf, RawDoc, Result, Value, ValueRef, doc};

use super::Approximate;
use crate::declare::owned_by;
use crate::layout::{Checked, Layout, Move, Periodic, Written};

impl Layout for Approximate {
    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        self.refuse_unique_there(tx, ns)?;
        let pending = self.pending(ns);
        let options: CollectionOptions = owned_by(tx, &pending, ns, "approximate")?;
        tx.create(&pending, &options)
    }

    fn beside(&self, ns: &Namespace) -> Vec<Namespace> {
        vec![self.pending(ns)]
    }

    fn find(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        self.find_seen(at, ns, find)
    }

    fn find_all(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        self.find_logical(at, ns, find)
    }

    /// Writes are exact also where reads are not.
    fn find_to_write(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        self.find_logical(at, ns, find)
    }

    fn count(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
        self.count_seen(at, ns, find)
    }

    fn distinct(&self, at: &dyn Transaction, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>> {
        self.distinct_seen(at, ns, path, find)
    }

    fn explain(&self, at: &dyn Transaction, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf> {
        self.explain_seen(at, ns, find, verbosity)
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

    fn update_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        self.update(tx, ns, id, update)
    }

    fn amends(&self, update: &Update) -> bool {
        update.want == Want::Nothing && self.appends(update)
    }

    fn update_at_once(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<bool> {
        self.one_more(tx, ns, id, update)
    }

    fn combines(&self, update: &Update) -> bool {
        self.appends(update)
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

    fn waits_for_disk(&self) -> bool {
        self.durable
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
        self.refuse_unique(specs.iter())?;
        tx.create_indexes(ns, specs)
    }

    fn drop_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        tx.drop_index(ns, name)
    }

    fn set_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()> {
        self.refuse_unique(std::iter::once(spec))?;
        tx.set_index(ns, name, spec)
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

    /// A declaration moves nothing; without it what waits is written into the documents.
    fn unmigrated(&self, out: bool) -> DocBuf {
        if out {
            DocBuf::new()
        } else {
            doc! { "_id": &doc! { "$in": &ArrayBuf::new() } }
        }
    }

    fn unmigrated_in(&self, ns: &Namespace, out: bool) -> Namespace {
        if out { self.pending(ns) } else { ns.clone() }
    }

    fn migrate(&self, tx: &mut dyn Transaction, ns: &Namespace, moved: Move<'_>, context: &Context) -> Result<bool> {
        if moved.out { self.flush_one(tx, ns, moved.id, context.now_ms) } else { Ok(false) }
    }

    fn periodic(&self) -> Option<&dyn Periodic> {
        Some(self)
    }
}
