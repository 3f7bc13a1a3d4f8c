//! A collection that existed before the pattern and becomes one of its logical collections. Until everything is copied it
//! is read and written as it was, and every write is done to the copy in the same commit; then it is dropped, and its
//! name stands for the copy.

use std::sync::Arc;

use espalier_query::Context;
use espalier_store::{
    CollStats, Cursor, Delete, Find, IndexSpec, Insert, Inserted, Layer, Namespace, Transaction, Update, Verbosity,
};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef};

use super::parting::is_parting;
use super::sifted::Sifted;
use super::{Shared, Tenant};
use crate::bson::{id_of, without};
use crate::layout::{Checked, Layout, Move, Written};
use crate::stored::{everything, get, insert, insert_each, insert_one, remove, replace, touch};
use crate::write::{delete_plain, update_plain};

/// Options of a collection that say nothing about its documents.
const HARMLESS: [&str; 3] = ["patterns", "patternJob", "changeStreamPreAndPostImages"];

#[derive(Clone, Debug)]
pub struct Joining(pub Tenant);

impl Joining {
    fn refused(&self, ns: &Namespace, what: String) -> Error {
        let into = &self.0.shared.into;
        Error::new(
            Code::InvalidOptions,
            format!(
                "patterns: shared: {ns} cannot become a part of '{into}': {what}; change it, or give it another name"
            ),
        )
    }

    /// Refuses before anything moves what could not be kept.
    pub(super) fn check_fit(&self, tx: &dyn Transaction, db: &str) -> Result<()> {
        let ns = &self.0.logical_name(db);
        let Some(info) = tx.collection(ns)? else {
            let message = format!("{ns} is a logical collection of the pattern 'shared' already");
            return Err(Error::new(Code::NamespaceExists, message));
        };
        if let Some(elem) = without(info.options.listed.as_raw(), &HARMLESS).as_raw().first() {
            return Err(self.refused(ns, format!("its option '{}' cannot be kept", elem.name())));
        }
        let physical = self.0.physical(ns);
        let there = tx.indexes(&physical)?;
        let own: Vec<IndexSpec> = tx.indexes(ns)?.into_iter().map(|index| index.spec).collect();
        for spec in self.0.prefixed_specs(&own).map_err(|error| self.refused(ns, error.message().to_string()))? {
            let other = there.iter().find(|index| index.spec.name == spec.name);
            let same = |other: &IndexSpec| {
                other.key().as_bytes() == spec.key().as_bytes()
                    && without(other.listed.as_raw(), &["v", "key", "name"])
                        == without(spec.listed.as_raw(), &["v", "key", "name"])
            };
            if other.is_some_and(|other| !same(&other.spec)) {
                return Err(self.refused(ns, format!("'{physical}' has another index with the name '{}'", spec.name)));
            }
        }
        let mut docs = tx.find(ns, &everything())?;
        while docs.advance()? {
            if let Err(error) = self.0.stored(docs.doc()) {
                return Err(self.refused(ns, format!("document with _id {}: {}", id_of(docs.doc()), error.message())));
            }
        }
        let mut theirs = self.0.find_logical(tx, ns, &everything())?;
        if theirs.advance()? {
            let id = id_of(theirs.doc());
            return Err(self.refused(ns, format!("'{physical}' has documents of its already, as with _id {id}")));
        }
        Ok(())
    }

    /// Refuses to be a part of what is not there.
    fn check_joins(&self, tx: &dyn Transaction, ns: &Namespace) -> Result<()> {
        let layer = tx.layer(&self.0.physical(ns))?;
        if layer.is_some_and(|layer| layer.answers_for(ns.collection()) == Some(&*self.0.shared.into)) {
            return Ok(());
        }
        let what = format!("that has no pattern 'shared' with the name '{}'", self.0.shared.name);
        Err(self.refused(ns, what))
    }

    fn key(&self, id: ValueRef<'_>) -> DocBuf {
        self.0.stored_id(id)
    }

    fn copy_of(&self, tx: &dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<Option<DocBuf>> {
        get(tx, &self.0.physical(ns), ValueRef::Document(self.key(id).as_raw()))
    }

    /// Makes the copy what the document is.
    fn copy(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        let Some(doc) = get(tx, ns, id)? else { return Ok(()) };
        let stored = self.0.stored(doc.as_raw())?;
        let physical = self.0.physical(ns);
        match self.copy_of(tx, ns, id)? {
            Some(_) => replace(tx, &physical, stored),
            None => insert(tx, &physical, &[stored.as_raw()]),
        }
    }
}

impl Layout for Joining {
    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        self.check_joins(tx, ns)?;
        self.check_fit(tx, ns.db())?;
        let own: Vec<IndexSpec> = tx.indexes(ns)?.into_iter().map(|index| index.spec).collect();
        self.0.create_prefixed(tx, ns, &own).map(drop)
    }

    fn beside(&self, _: &Namespace) -> Vec<Namespace> {
        Vec::new()
    }

    fn is_doubled(&self, _: bool) -> bool {
        true
    }

    fn find(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        at.find(ns, find)
    }

    fn count(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
        at.count(ns, find)
    }

    fn distinct(&self, at: &dyn Transaction, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>> {
        at.distinct(ns, path, find)
    }

    fn explain(&self, at: &dyn Transaction, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf> {
        at.explain(ns, find, verbosity)
    }

    fn insert(&self, tx: &mut dyn Transaction, ns: &Namespace, docs: &[RawDoc<'_>], how: &Insert) -> Result<Inserted> {
        let physical = self.0.physical(ns);
        insert_each(docs, how, |doc| {
            let stored = match self.0.stored(doc) {
                Ok(stored) => stored,
                Err(error) => return Ok(Some(error)),
            };
            let wrong = insert_one(tx, ns, doc, how)?;
            if wrong.is_none() {
                // The same keys as here, with the tenant before them; so it is taken there, too.
                insert(tx, &physical, &[stored.as_raw()])?;
            }
            Ok(wrong)
        })
    }

    fn update_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        let written = update_plain(tx, ns, id, update)?;
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
        let written = delete_plain(tx, ns, id, delete)?;
        if written.is_some() {
            remove(tx, &self.0.physical(ns), ValueRef::Document(self.key(id).as_raw()))?;
        }
        Ok(written)
    }

    fn create_indexes(&self, tx: &mut dyn Transaction, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        self.0.create_prefixed(tx, ns, specs)?;
        tx.create_indexes(ns, specs)
    }

    fn drop_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        tx.drop_index(ns, name)
    }

    fn coll_stats(&self, at: &dyn Transaction, ns: &Namespace) -> Result<CollStats> {
        at.coll_stats(ns)
    }

    fn health(&self, _: &dyn Transaction, _: &Namespace) -> Result<DocBuf> {
        let mut doc = DocBuf::new();
        doc.append("into", &*self.0.shared.into).append(&self.0.shared.discriminator, &*self.0.tenant);
        doc.append("joining", true);
        Ok(doc)
    }

    /// Every copy is what the document is; what is not copied yet is no matter.
    fn check(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked> {
        let mut checked = Checked::default();
        let mut copies = self.0.find_logical(at, ns, &everything())?;
        while copies.advance()? {
            context.interrupt.check()?;
            checked.documents += 1;
            let id = id_of(copies.doc());
            let own = get(at, ns, id)?.map(|doc| self.0.stored(doc.as_raw())).transpose()?;
            let own = own.map(|stored| self.0.logical_of(stored.as_raw()));
            if own.is_none_or(|own| own.as_bytes() != copies.doc().as_bytes()) {
                checked.violations.push((format!("{ns}, _id {id}: the copy is another"), Value::own(id)));
            }
        }
        Ok(checked)
    }

    fn repair(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        match get(tx, ns, id)? {
            Some(_) => self.copy(tx, ns, id),
            None => remove(tx, &self.0.physical(ns), ValueRef::Document(self.key(id).as_raw())),
        }
    }

    fn unmigrated(&self, _: bool) -> DocBuf {
        DocBuf::new()
    }

    fn left(&self, at: &dyn Transaction, ns: &Namespace, out: bool, context: &Arc<Context>) -> Result<Box<dyn Cursor>> {
        if out {
            return self.0.find_logical(at, ns, &everything());
        }
        let docs = at.find(ns, &Find::new(everything().filter, context.clone()))?;
        let (at, joining, ns) = (at.reader(), self.clone(), ns.clone());
        let wanted = move |doc: RawDoc<'_>| Ok(joining.copy_of(&*at, &ns, id_of(doc))?.is_none());
        Ok(Box::new(Sifted { docs, wanted }))
    }

    fn left_count(&self, at: &dyn Transaction, ns: &Namespace, _out: bool, _: &Arc<Context>) -> Result<u64> {
        at.count(ns, &everything())
    }

    fn migrate(&self, tx: &mut dyn Transaction, ns: &Namespace, moved: Move<'_>, _: &Context) -> Result<bool> {
        let id = moved.id;
        let copied = self.copy_of(tx, ns, id)?.is_some();
        if moved.out {
            remove(tx, &self.0.physical(ns), ValueRef::Document(self.key(id).as_raw()))?;
            return Ok(copied);
        }
        let Some(doc) = get(tx, ns, id)?.filter(|_| !copied) else { return Ok(false) };
        // Whoever deletes it meanwhile finds no copy to delete, and must notice that there is going to be one.
        touch(tx, ns, doc)?;
        self.copy(tx, ns, id)?;
        Ok(true)
    }

    /// From now on the name stands for the copy.
    fn completed(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<bool> {
        tx.set_silent(true);
        tx.drop_collection(ns)
    }
}

impl Shared {
    /// The collections that fit the template and are none of the pattern's yet.
    pub(super) fn fitting(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Vec<Tenant>> {
        let mut there = at.collections(ns.db())?;
        there.retain(|there| !is_parting(there.options.listed.as_raw()));
        Ok(there.iter().filter_map(|there| self.logical(&there.name)).collect())
    }

    /// Refuses a write to a document whose collection is on its way into this one: it would be lost there.
    pub(super) fn check_joined(&self, at: &dyn Transaction, ns: &Namespace, stored: RawDoc<'_>) -> Result<()> {
        let Some((tenant, _)) = self.parts(stored) else { return Ok(()) };
        let name = Namespace::new(ns.db(), &self.name_of(tenant));
        let joins = |layer: Layer| layer.answers_for(name.collection()).is_none() && !is_parting(layer.options());
        if !at.layer(&name)?.is_some_and(joins) {
            return Ok(());
        }
        let message = format!("{name} is being made a part of {ns}; write to {name} until currentOp shows it no more");
        Err(Error::new(Code::CommandNotSupported, message))
    }

    /// The declaration that makes an existing collection a part of this one.
    pub(super) fn joining_declaration(&self) -> DocBuf {
        let mut options = self.options();
        options.append("joining", true);
        let mut declaration = DocBuf::new();
        declaration.append("shared", &options);
        declaration
    }
}
