//! A logical collection as a layout.

use espalier_query::Context;
use espalier_store::{
    CollStats, Cursor, Delete, Find, IndexInfo, IndexSpec, Insert, Inserted, Namespace, Transaction, Update, Verbosity,
};
use espalier_value::{DocBuf, RawDoc, Result, Value, ValueRef};

use super::Tenant;
use crate::layout::{Checked, Layout, Move, Written};
use crate::stored::{by, everything, insert_each, query};

impl Layout for Tenant {
    fn prepare(&self, _: &mut dyn Transaction, _: &Namespace) -> Result<()> {
        Ok(())
    }

    fn beside(&self, _: &Namespace) -> Vec<Namespace> {
        Vec::new()
    }

    fn physical(&self) -> Option<&str> {
        self.physical_name()
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
        insert_each(docs, insert, |doc| self.insert_one(tx, ns, doc, insert))
    }

    fn inserted(&self, doc: RawDoc<'_>) -> DocBuf {
        // Whoever tells of it has stored it.
        self.stored(doc).map_or_else(|_| DocBuf::from_raw(doc), |stored| self.logical_of(stored.as_raw()))
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

    fn indexes(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Vec<IndexInfo>> {
        self.list(at, ns)
    }

    fn create_indexes(&self, tx: &mut dyn Transaction, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        self.create_prefixed(tx, ns, specs)
    }

    fn drop_index(&self, _: &mut dyn Transaction, _: &Namespace, name: &str) -> Result<()> {
        Err(self.refused(&format!("dropping the index '{name}' of all tenants")))
    }

    fn set_index(&self, _: &mut dyn Transaction, _: &Namespace, name: &str, _: &IndexSpec) -> Result<()> {
        Err(self.refused(&format!("changing the index '{name}' of all tenants")))
    }

    fn coll_stats(&self, at: &dyn Transaction, ns: &Namespace) -> Result<CollStats> {
        let mut stats = CollStats::default();
        let mut cursor = self.find_logical(at, ns, &everything())?;
        while cursor.advance()? {
            stats.count += 1;
            stats.size += cursor.doc().as_bytes().len() as u64;
        }
        Ok(stats)
    }

    fn health(&self, _: &dyn Transaction, _: &Namespace) -> Result<DocBuf> {
        let mut doc = DocBuf::new();
        doc.append("into", &*self.shared.into).append(&self.shared.discriminator, &*self.tenant);
        Ok(doc)
    }

    fn check(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked> {
        let whose = by(&self.shared.discriminator, ValueRef::String(&self.tenant))?;
        self.shared.check_some(at, &self.physical(ns), &query(whose), context)
    }

    fn repair(&self, _: &mut dyn Transaction, _: &Namespace, _: ValueRef<'_>) -> Result<()> {
        Err(self.refused("validate with repair"))
    }

    fn unmigrated(&self, _: bool) -> DocBuf {
        DocBuf::new()
    }

    fn migrate(&self, _: &mut dyn Transaction, _: &Namespace, _: Move<'_>, _: &Context) -> Result<bool> {
        Err(self.refused("collMod"))
    }
}
