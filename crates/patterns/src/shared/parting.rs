//! A logical collection on its way to become a collection of its own, while the pattern is being dropped. Until all of them
//! are copied it is read and written where it was, and every write is done to the copy in the same commit; then, in one commit
//! for all, the copies become what their names stand for.

use espalier_query::Context;
use espalier_store::{
    CollStats, CollectionOptions, Cursor, Delete, Find, IndexInfo, IndexSpec, Insert, Inserted, Namespace, Transaction,
    Update, Verbosity,
};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef};

use super::{Shared, Tenant};
use crate::bson::id_of;
use crate::declare::with_listed;
use crate::layout::{Checked, Layout, Move, Written};
use crate::stored::{get, insert, insert_each, remove, replace};

#[derive(Clone, Debug)]
pub struct Parting(pub Tenant);

/// Whether these are the options of such a collection.
pub fn is_parting(options: RawDoc<'_>) -> bool {
    into(options).is_some()
}

/// The collection that it is still a part of.
pub fn into(options: RawDoc<'_>) -> Option<&str> {
    let Some(ValueRef::Array(patterns)) = options.get("patterns") else { return None };
    let shared = patterns.iter().next()?.as_doc()?.get_doc("shared")?;
    shared.get("parting").and_then(|_| shared.get_str("into"))
}

impl Parting {
    /// The options that the copy has until it stands for itself: those of the physical collection that concern all.
    pub fn options(&self, physical: &CollectionOptions) -> CollectionOptions {
        let mut listed = DocBuf::new();
        if let Some(images) = physical.listed.as_raw().elem("changeStreamPreAndPostImages") {
            listed.append_elem(images);
        }
        let mut options = self.0.shared.options();
        options.append("parting", true);
        let mut declaration = DocBuf::new();
        declaration.append("shared", &options);
        listed.append_array("patterns", |list| {
            list.push(declaration.as_raw());
        });
        with_listed(&CollectionOptions { pre_images: physical.pre_images, ..CollectionOptions::default() }, listed)
    }

    /// Makes the copy what the document is.
    pub fn copy(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        let key = self.0.stored_id(id);
        let Some(stored) = get(tx, &self.0.physical(ns), ValueRef::Document(key.as_raw()))? else {
            return remove(tx, ns, id);
        };
        let doc = self.0.logical_of(stored.as_raw());
        match get(tx, ns, id)? {
            Some(_) => replace(tx, ns, doc),
            None => insert(tx, ns, &[doc.as_raw()]),
        }
    }
}

impl Shared {
    /// The copy of a stored document's collection, if there is one and the pattern is being dropped.
    pub(super) fn parting(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        stored: RawDoc<'_>,
    ) -> Result<Option<(Parting, Namespace)>> {
        let Some((tenant, name)) = self.whose(ns, stored) else { return Ok(None) };
        let copied = at.layer(&name)?.is_some_and(|layer| is_parting(layer.options()));
        Ok(copied.then_some((Parting(tenant), name)))
    }

    /// Does what was done to a stored document to its copy, too, if there is one.
    pub(super) fn mirror(&self, tx: &mut dyn Transaction, ns: &Namespace, stored: RawDoc<'_>) -> Result<()> {
        let (Some((parting, name)), Some((_, id))) = (self.parting(tx, ns, stored)?, self.parts(stored)) else {
            return Ok(());
        };
        parting.copy(tx, &name, id)
    }
}

impl Layout for Parting {
    fn prepare(&self, _: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        let message = format!("patterns: shared: only the pattern itself makes {ns} a collection of its own");
        Err(Error::new(Code::InvalidOptions, message))
    }

    fn beside(&self, _: &Namespace) -> Vec<Namespace> {
        Vec::new()
    }

    fn physical(&self) -> Option<&str> {
        self.0.physical_name()
    }

    fn is_doubled(&self, _: bool) -> bool {
        true
    }

    fn find(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        self.0.find_logical(at, ns, find)
    }

    fn count(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
        self.0.count_logical(at, ns, find)
    }

    fn distinct(&self, at: &dyn Transaction, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>> {
        self.0.distinct_logical(at, ns, path, find)
    }

    fn explain(&self, at: &dyn Transaction, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf> {
        self.0.explain_logical(at, ns, find, verbosity)
    }

    fn insert(&self, tx: &mut dyn Transaction, ns: &Namespace, docs: &[RawDoc<'_>], how: &Insert) -> Result<Inserted> {
        insert_each(docs, how, |doc| {
            let wrong = self.0.insert_one(tx, ns, doc, how)?;
            if wrong.is_none() {
                self.copy(tx, ns, id_of(doc))?;
            }
            Ok(wrong)
        })
    }

    fn inserted(&self, doc: RawDoc<'_>) -> DocBuf {
        Layout::inserted(&self.0, doc)
    }

    fn update_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        let written = self.0.update(tx, ns, id, update)?;
        if written.as_ref().is_some_and(|written| written.modified) {
            self.copy(tx, ns, id)?;
        }
        Ok(written)
    }

    fn delete_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        delete: &Delete,
    ) -> Result<Option<Written>> {
        let written = self.0.delete(tx, ns, id, delete)?;
        if written.is_some() {
            remove(tx, ns, id)?;
        }
        Ok(written)
    }

    fn indexes(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Vec<IndexInfo>> {
        self.0.list(at, ns)
    }

    fn create_indexes(&self, tx: &mut dyn Transaction, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        self.0.create_prefixed(tx, ns, specs)
    }

    fn drop_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        Layout::drop_index(&self.0, tx, ns, name)
    }

    fn set_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()> {
        Layout::set_index(&self.0, tx, ns, name, spec)
    }

    fn coll_stats(&self, at: &dyn Transaction, ns: &Namespace) -> Result<CollStats> {
        Layout::coll_stats(&self.0, at, ns)
    }

    fn health(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        let mut doc = Layout::health(&self.0, at, ns)?;
        doc.append("parting", true);
        Ok(doc)
    }

    fn check(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked> {
        Layout::check(&self.0, at, ns, context)
    }

    fn repair(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        self.copy(tx, ns, id)
    }

    fn unmigrated(&self, _: bool) -> DocBuf {
        DocBuf::new()
    }

    fn migrate(&self, tx: &mut dyn Transaction, ns: &Namespace, moved: Move<'_>, context: &Context) -> Result<bool> {
        Layout::migrate(&self.0, tx, ns, moved, context)
    }
}
