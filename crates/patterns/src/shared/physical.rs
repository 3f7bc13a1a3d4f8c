//! The physical collection: every tenant's documents, as they are stored.

use std::sync::Arc;

use espalier_query::update::Apply;
use espalier_query::{Context, Stream};
use espalier_store::{
    CollStats, CollectionOptions, Cursor, Delete, Find, IndexSpec, Insert, Inserted, Namespace, Transaction, Update,
    Verbosity, Want,
};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef};

use super::indexes::TENANT_INDEX;
use super::joining::Joining;
use super::sifted::Sifted;
use super::{Shared, Tenant};
use crate::bson::id_of;
use crate::layout::{Checked, Layout, Move, Written};
use crate::roles::Roles;
use crate::stored::{everything, get, insert, insert_each, insert_one, remove, store};
use crate::write::delete_plain;

impl Layout for Shared {
    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        if let Some(watcher) = Roles::of(tx, ns)?.and_then(|roles| roles.watchers.first().cloned()) {
            let message = format!(
                "patterns: shared: {ns} is the source of a pattern on '{watcher}', which would not see what is written \
                 under the logical names; drop that pattern first"
            );
            return Err(Error::new(Code::InvalidOptions, message));
        }
        let mut docs = tx.find(ns, &everything())?;
        while docs.advance()? {
            self.tenant_of(docs.doc()).map_err(|error| {
                let id = id_of(docs.doc());
                error.context(&format!("patterns: shared: the document with _id {id} of {ns} belongs to no one"))
            })?;
        }
        drop(docs);
        for tenant in self.fitting(tx, ns)? {
            Joining(tenant).check_fit(tx, ns.db())?;
        }
        if tx.collection(ns)?.is_some() {
            self.after_create(tx, ns)?;
        }
        Ok(())
    }

    fn after_create(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        tx.create_indexes(ns, &[self.own_index()?]).map(drop)
    }

    fn joining(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Vec<(Namespace, DocBuf)>> {
        let declaration = self.joining_declaration();
        let all = self.fitting(at, ns)?.into_iter();
        Ok(all.map(|tenant| (tenant.logical_name(ns.db()), declaration.clone())).collect())
    }

    fn beside(&self, _: &Namespace) -> Vec<Namespace> {
        Vec::new()
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn names(&self, at: &dyn Transaction, ns: &Namespace, context: &Arc<Context>) -> Result<Option<Box<dyn Stream>>> {
        self.list_names(at, ns, context).map(Some)
    }

    fn logical(&self, name: &str) -> Option<Arc<dyn Layout>> {
        Shared::logical(self, name).map(|tenant| Arc::new(tenant) as Arc<dyn Layout>)
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
        insert_each(docs, how, |doc| {
            if let Some(wrong) = self.wrong(doc) {
                return Ok(Some(self.not_stored_so(&wrong)));
            }
            if let Err(error) = self.check_joined(tx, ns, doc) {
                return Ok(Some(error));
            }
            let wrong = insert_one(tx, ns, doc, how)?;
            if wrong.is_none() {
                self.mirror(tx, ns, doc)?;
                self.tell_inserted(tx, ns, doc)?;
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
        let Some(before) = get(tx, ns, id)? else { return Ok(None) };
        let Some(found) = update.filter.matches_at(before.as_raw(), &update.context)? else { return Ok(None) };
        let apply = Apply { context: &update.context, position: found.position, inserting: false };
        let Some((after, did)) = update.update.apply_described(before.as_raw(), &apply)? else {
            let image = (update.want != Want::Nothing).then_some(before);
            return Ok(Some(Written { modified: false, image, did: None }));
        };
        self.check_joined(tx, ns, before.as_raw())?;
        match self.wrong(after.as_raw()) {
            // Not brought into the pattern yet; then it must stay one that can be.
            Some(_) if self.wrong(before.as_raw()).is_some() => drop(self.tenant_of(after.as_raw())?),
            Some(wrong) => return Err(self.not_stored_so(&wrong)),
            None => {}
        }
        store(tx, ns, id, after.clone(), update)?;
        self.mirror(tx, ns, after.as_raw())?;
        self.tell_updated(tx, ns, before.as_raw(), after.as_raw(), &did)?;
        let image = match update.want {
            Want::Nothing => None,
            Want::Before => Some(before),
            Want::After => Some(after),
        };
        Ok(Some(Written { modified: true, image, did: Some(did) }))
    }

    fn delete_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        delete: &Delete,
    ) -> Result<Option<Written>> {
        let Some(before) = get(tx, ns, id)? else { return Ok(None) };
        self.check_joined(tx, ns, before.as_raw())?;
        let written = delete_plain(tx, ns, id, delete)?;
        if written.is_some() {
            self.mirror(tx, ns, before.as_raw())?;
            self.tell_deleted(tx, ns, before.as_raw())?;
        }
        Ok(written)
    }

    fn create_indexes(&self, tx: &mut dyn Transaction, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        self.refuse_while_parting(tx, ns, "indexes cannot be made")?;
        tx.create_indexes(ns, specs)
    }

    fn drop_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        if name == TENANT_INDEX {
            let message = format!("the index '{name}' belongs to the pattern 'shared' and cannot be dropped");
            return Err(Error::new(Code::InvalidOptions, message));
        }
        self.refuse_while_parting(tx, ns, "an index cannot be dropped")?;
        tx.drop_index(ns, name)
    }

    fn set_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()> {
        self.refuse_while_parting(tx, ns, "an index cannot be changed")?;
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

    fn unmigrated(&self, _out: bool) -> DocBuf {
        DocBuf::new()
    }

    fn left(&self, at: &dyn Transaction, ns: &Namespace, out: bool, context: &Arc<Context>) -> Result<Box<dyn Cursor>> {
        if out {
            return self.unparted(at, ns, context);
        }
        let docs = at.find(ns, &Find::new(everything().filter, context.clone()))?;
        let shared = self.clone();
        // There before the pattern, and not in its shape yet.
        let wanted = move |doc: RawDoc<'_>| Ok(shared.wrong(doc).is_some());
        Ok(Box::new(Sifted { docs, wanted }))
    }

    fn left_count(&self, at: &dyn Transaction, ns: &Namespace, _out: bool, _: &Arc<Context>) -> Result<u64> {
        at.count(ns, &everything())
    }

    fn migrate(&self, tx: &mut dyn Transaction, ns: &Namespace, moved: Move<'_>, _: &Context) -> Result<bool> {
        let Some(doc) = get(tx, ns, moved.id)? else { return Ok(false) };
        if moved.out {
            return self.part_one(tx, ns, doc.as_raw());
        }
        if self.wrong(doc.as_raw()).is_none() {
            return Ok(false);
        }
        let stored = self.tenant_of(doc.as_raw())?.stored(doc.as_raw())?;
        remove(tx, ns, moved.id)?;
        insert(tx, ns, &[stored.as_raw()])?;
        Ok(true)
    }

    fn writes_while_leaving(&self) -> bool {
        true
    }

    fn is_doubled(&self, leaving: bool) -> bool {
        leaving
    }

    fn check_leaving(&self, at: &dyn Transaction, ns: &Namespace) -> Result<()> {
        self.check_parting(at, ns)
    }

    fn leaving(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        self.begin_parting(tx, ns).map(drop)
    }

    fn leaves_more(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<bool> {
        self.begin_parting(tx, ns)
    }

    fn part(&self, tx: &mut dyn Transaction, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
        Shared::part(self, tx, ns, options)
    }

    fn stays(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<bool> {
        self.drop_copies(tx, ns)?;
        Ok(true)
    }

    fn parts(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Vec<Namespace>> {
        self.copies(at, ns)
    }
}

impl Shared {
    /// The tenant of a stored document, or of one that is to be brought into the pattern.
    fn tenant_of(&self, doc: RawDoc<'_>) -> Result<Tenant> {
        let named = match self.parts(doc) {
            Some((tenant, _)) => Some(tenant),
            None => doc.get(&self.discriminator).and_then(ValueRef::as_str),
        };
        let tenant = named.and_then(|tenant| Shared::logical(self, &self.name_of(tenant)));
        tenant.ok_or_else(|| {
            let message = format!("'{}' must be a text that fits into '{}'", self.discriminator, self.name);
            Error::new(Code::InvalidOptions, message)
        })
    }

    fn not_stored_so(&self, wrong: &str) -> Error {
        Error::new(
            Code::CommandNotSupported,
            format!("{wrong}; write to the logical collections of the pattern 'shared', '{}'", self.name),
        )
    }
}
