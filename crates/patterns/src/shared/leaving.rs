//! Dropping the pattern: every logical collection becomes a collection of its own, with its documents and indexes, and the
//! physical collection is left empty.
//!
//! Each gets a copy under its name (see `parting`), kept by every write from then on; documents that were there are copied
//! in passes. A logical collection that appears meanwhile gets its copy before the next pass. At the end writers are held off
//! for the moment that it takes to look for the last of those, and one commit makes the copies what their names stand for.

use std::collections::BTreeSet;
use std::sync::Arc;

use espalier_query::Context;
use espalier_store::{CollectionOptions, Cursor, Find, IndexSpec, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

use super::indexes::TENANT_INDEX;
use super::parting::{self, Parting, is_parting};
use super::sifted::Sifted;
use super::{Shared, Tenant};
use crate::bson::{id_of, without};
use crate::declare::{self, Direction, with_listed};
use crate::roles::Roles;
use crate::stored::{everything, get, insert, touch};

impl Shared {
    fn cannot_part(&self, ns: &Namespace, code: Code, what: String) -> Error {
        Error::new(code, format!("patterns: the pattern 'shared' on {ns} cannot be dropped: {what}"))
    }

    /// Refuses to be dropped, before anything is done, where the collections could not be what the logical ones were.
    pub(super) fn check_parting(&self, at: &dyn Transaction, ns: &Namespace) -> Result<()> {
        let refuse = |what: String| Err(self.cannot_part(ns, Code::CommandNotSupported, what));
        if let Some(tenant) = self.fitting(at, ns)?.into_iter().next() {
            let name = tenant.logical_name(ns.db());
            return refuse(format!("{name} is just being made a part of it; currentOp shows how far it is"));
        }
        let mut names = BTreeSet::new();
        let mut docs = at.find(ns, &everything())?;
        while docs.advance()? {
            if let Some(wrong) = self.wrong(docs.doc()) {
                let id = id_of(docs.doc());
                return refuse(format!("the document with _id {id}: {wrong}; validate with repair: true may mend it"));
            }
            let Some((_, name)) = self.whose(ns, docs.doc()) else {
                return refuse(format!("the document with _id {} belongs to no one", id_of(docs.doc())));
            };
            if names.contains(name.collection()) {
                continue;
            }
            if Namespace::checked(name.db(), name.collection()).is_err() || name.is_system() {
                return refuse(format!("'{}' cannot be the name of a collection", name.collection()));
            }
            names.insert(name.collection().to_string());
        }
        let left = at.collections_left()?;
        if names.len() > left {
            let what = format!(
                "its {} logical collections would become collections, and this server can have {left} more; raise \
                 --max-collections, or drop logical collections that are not needed any more",
                names.len()
            );
            return Err(self.cannot_part(ns, Code::OperationFailed, what));
        }
        for index in at.indexes(ns)? {
            let (name, spec) = (&index.spec.name, &index.spec);
            let ours = spec.key().first().is_some_and(|first| first.name() == &*self.discriminator);
            let by_id = spec.partial.as_ref().is_some_and(|filter| super::indexes::reads_id(&filter.dependencies()));
            if !spec.is_id() && (spec.unique && !ours || by_id) {
                let what = if by_id { "is partial by _id" } else { "is unique across logical collections" };
                return refuse(format!("its index '{name}' {what}, which none of them could be; drop it first"));
            }
        }
        Ok(())
    }

    /// Every logical collection that has documents.
    pub(super) fn tenants(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Vec<Tenant>> {
        let named = at.distinct(ns, &self.discriminator, &everything())?;
        let fits = |tenant: &str| Shared::logical(self, &self.name_of(tenant));
        Ok(named.iter().filter_map(|value| value.or_null().as_str().and_then(fits)).collect())
    }

    /// Makes the copies that are not there yet, empty; false if all are.
    pub(super) fn begin_parting(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<bool> {
        let missing = self.make_copies(tx, ns)?;
        if !missing.is_empty() {
            // Writers that began before and do not know of them conflict with this, and start over.
            let Some(info) = tx.collection(ns)? else { return Ok(false) };
            tx.set_options(ns, &info.options)?;
        }
        Ok(!missing.is_empty())
    }

    fn make_copies(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<Vec<Tenant>> {
        let Some(physical) = tx.collection(ns)? else { return Ok(Vec::new()) };
        tx.set_silent(true);
        let mut made = Vec::new();
        for tenant in self.tenants(tx, ns)? {
            let name = tenant.logical_name(ns.db());
            if let Some(there) = tx.collection(&name)? {
                if !is_parting(there.options.listed.as_raw()) {
                    let what = format!("{name} is a collection by itself, and its copy cannot have that name");
                    return Err(self.cannot_part(ns, Code::NamespaceExists, what));
                }
                continue;
            }
            let parting = Parting(tenant);
            tx.create(&name, &parting.options(&physical.options))?;
            self.give_indexes(tx, ns, &parting.0)?;
            if tx.collection(ns)?.is_none() {
                // Dropped meanwhile, with all that belonged to it then.
                tx.drop_collection(&name)?;
                return Ok(Vec::new());
            }
            made.push(parting.0);
        }
        Ok(made)
    }

    /// The copy gets the indexes that the logical collection shows, and those that it could not have and all of them had
    /// together.
    fn give_indexes(&self, tx: &mut dyn Transaction, ns: &Namespace, tenant: &Tenant) -> Result<()> {
        let name = tenant.logical_name(ns.db());
        let mut specs: Vec<IndexSpec> = tenant.list(tx, ns)?.into_iter().map(|index| index.spec).collect();
        for index in tx.indexes(ns)? {
            let mut parts = index.spec.key().iter().map(|part| part.name());
            let first = index.spec.key().first().map(|first| first.name());
            let ours = first == Some(&*self.discriminator) || index.spec.name == TENANT_INDEX;
            if !ours && !parts.any(|name| name == "_id" || name.starts_with("_id.")) {
                specs.push(index.spec);
            }
        }
        specs.retain(|spec| !spec.is_id());
        if specs.is_empty() {
            return Ok(());
        }
        tx.create_indexes(&name, &specs).map(drop)
    }

    /// The stored documents that have no copy yet, of the logical collections that have one.
    pub(super) fn unparted(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        context: &Arc<Context>,
    ) -> Result<Box<dyn Cursor>> {
        let docs = at.find(ns, &Find::new(everything().filter, context.clone()))?;
        let (at, shared, ns) = (at.reader(), self.clone(), ns.clone());
        let wanted = move |doc: RawDoc<'_>| {
            let Some((_, id)) = shared.parts(doc) else {
                let what = format!("the document with _id {} belongs to no one", id_of(doc));
                return Err(shared.cannot_part(&ns, Code::CommandNotSupported, what));
            };
            match shared.parting(&*at, &ns, doc)? {
                Some((_, name)) => Ok(get(&*at, &name, id)?.is_none()),
                None => Ok(false),
            }
        };
        Ok(Box::new(Sifted { docs, wanted }))
    }

    /// Copies one document; false if it has its copy, or nothing to put it into yet.
    pub(super) fn part_one(&self, tx: &mut dyn Transaction, ns: &Namespace, stored: RawDoc<'_>) -> Result<bool> {
        let Some((parting, name)) = self.parting(tx, ns, stored)? else { return Ok(false) };
        let Some((_, id)) = self.parts(stored) else { return Ok(false) };
        if get(tx, &name, id)?.is_some() {
            return Ok(false);
        }
        // Whoever deletes it meanwhile finds no copy to delete, and must notice that there is going to be one.
        touch(tx, ns, DocBuf::from_raw(stored))?;
        parting.copy(tx, &name, id)?;
        Ok(true)
    }

    /// Makes the copies what their names stand for.
    pub(super) fn part(&self, tx: &mut dyn Transaction, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
        tx.set_silent(true);
        let Some(info) = tx.collection(ns)? else { return Ok(()) };
        // Writers are held off from here.
        tx.set_options(ns, &declare::settling(&info.options))?;
        for tenant in self.make_copies(tx, ns)? {
            let name = tenant.logical_name(ns.db());
            let mut docs = tenant.find_logical(&*tx.reader(), &name, &everything())?;
            while docs.advance()? {
                insert(tx, &name, &[docs.doc()])?;
            }
        }
        let mut all = vec![(ns.clone(), options.clone())];
        for name in self.copies(tx, ns)? {
            let Some(tenant) = Shared::logical(self, name.collection()) else { continue };
            self.give_indexes(tx, ns, &tenant)?;
            let Some(copy) = tx.collection(&name)? else { continue };
            all.push((name, with_listed(&copy.options, without(copy.options.listed.as_raw(), &["patterns"]))));
        }
        tx.set_options_together(&all, ns)?;
        match tx.indexes(ns)?.iter().any(|index| index.spec.name == TENANT_INDEX) {
            true => tx.drop_index(ns, TENANT_INDEX),
            false => Ok(()),
        }
    }

    /// The copies that there are.
    pub(super) fn copies(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Vec<Namespace>> {
        let all = at.collections(ns.db())?.into_iter();
        let ours = all.filter(|info| parting::into(info.options.listed.as_raw()) == Some(ns.collection()));
        Ok(ours.map(|info| Namespace::new(ns.db(), &info.name)).collect())
    }

    /// The pattern stays: the copies are not needed any more.
    pub(super) fn drop_copies(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        tx.set_silent(true);
        for name in self.copies(tx, ns)? {
            tx.drop_collection(&name)?;
        }
        Ok(())
    }

    /// Refuses to change indexes while the copies get theirs.
    pub(super) fn refuse_while_parting(&self, at: &dyn Transaction, ns: &Namespace, what: &str) -> Result<()> {
        if !Roles::of(at, ns)?.is_some_and(|roles| roles.leaving) {
            return Ok(());
        }
        let message = format!("{what}: the pattern 'shared' on {ns} is being dropped; currentOp shows how far it is");
        Err(Error::new(Code::CommandNotSupported, message))
    }
}

/// Drops copies that were left behind when the physical collection was dropped, or the pattern stayed, and the server
/// ended in between.
pub fn drop_orphans(tx: &mut dyn Transaction, db: &str) -> Result<()> {
    for info in tx.collections(db)? {
        let Some(into) = parting::into(info.options.listed.as_raw()) else { continue };
        let physical = tx.collection(&Namespace::new(db, into))?;
        let pending = physical.and_then(|physical| declare::pending(physical.options.listed.as_raw()));
        if pending != Some(Direction::Out) {
            tx.set_silent(true);
            tx.drop_collection(&Namespace::new(db, &info.name))?;
        }
    }
    Ok(())
}
