//! The bucket pattern as a layout.

use std::sync::Arc;

use espalier_query::{Context, Filter};
use espalier_store::{
    CollStats, CollectionOptions, Cursor, Delete, Find, IndexSpec, Insert, Inserted, Namespace, Transaction, Update,
    Verbosity,
};
use espalier_value::{DocBuf, RawDoc, Result, Value, ValueRef};

use super::Bucket;
use crate::beside;
use crate::declare::owned_by;
use crate::layout::{Checked, Done, Layout, Move, Written};
use crate::stored::query;
use crate::write::Turn;

impl Layout for Bucket {
    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        let buckets = self.buckets(ns);
        let options: CollectionOptions = owned_by(tx, &buckets, ns, "bucket")?;
        self.check_fit(tx, ns)?;
        tx.create(&buckets, &options)?;
        let mut specs = self.own_indexes()?;
        for index in tx.indexes(ns)? {
            specs.extend(self.for_buckets(&index.spec)?);
        }
        beside::create_indexes(tx, &buckets, specs)
    }

    fn beside(&self, ns: &Namespace) -> Vec<Namespace> {
        vec![self.buckets(ns)]
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

    fn turn(&self, ns: &Namespace, doc: RawDoc<'_>) -> Option<Turn> {
        let group = self.group(doc).ok()?;
        Some((self.buckets(ns), Value::own(ValueRef::Binary(0, &group.bytes()))))
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

    fn delete_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        delete: &Delete,
    ) -> Result<Option<Written>> {
        self.delete(tx, ns, id, delete)
    }

    fn delete_some(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        ids: &[Value<'static>],
        delete: &Delete,
    ) -> Result<Option<Vec<Value<'static>>>> {
        self.delete_many(tx, ns, ids, delete).map(Some)
    }

    fn update_some(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        ids: &[Value<'static>],
        update: &Update,
    ) -> Result<Option<(Vec<Done>, Vec<Value<'static>>)>> {
        self.update_many(tx, ns, ids, update).map(Some)
    }

    fn create_indexes(&self, tx: &mut dyn Transaction, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        self.create_logical_indexes(tx, ns, specs)
    }

    fn drop_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        self.drop_logical_index(tx, ns, name)
    }

    fn coll_stats(&self, at: &dyn Transaction, ns: &Namespace) -> Result<CollStats> {
        self.stats_of(at, ns)
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

    fn unmigrated(&self, _out: bool) -> DocBuf {
        DocBuf::new()
    }

    fn left(&self, at: &dyn Transaction, ns: &Namespace, out: bool, context: &Arc<Context>) -> Result<Box<dyn Cursor>> {
        if out {
            self.all_in_buckets(at, ns)
        } else {
            at.find(ns, &Find::new(Arc::new(Filter::empty()), context.clone()))
        }
    }

    fn left_count(&self, at: &dyn Transaction, ns: &Namespace, out: bool, _context: &Arc<Context>) -> Result<u64> {
        let plain = at.count(ns, &query(Arc::new(Filter::empty())))?;
        if out { Ok(self.count_all(at, ns)?.saturating_sub(plain)) } else { Ok(plain) }
    }

    fn leaving(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        let buckets = self.buckets(ns);
        match tx.collection(&buckets)? {
            // The same options anew: a transaction that is about to write a bucket conflicts, and sees the change.
            Some(info) => tx.set_options(&buckets, &info.options),
            None => Ok(()),
        }
    }

    fn insert_leaving(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
        insert: &Insert,
    ) -> Result<Inserted> {
        self.insert_plain(tx, ns, docs, insert)
    }

    fn migrate(&self, tx: &mut dyn Transaction, ns: &Namespace, moved: Move<'_>, context: &Context) -> Result<bool> {
        if moved.out { self.move_out(tx, ns, moved.id) } else { self.move_in(tx, ns, moved, context) }
    }
}
