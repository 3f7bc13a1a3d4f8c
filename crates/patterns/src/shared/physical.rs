//! The physical collection: every tenant's documents, as they are stored.

use std::sync::Arc;

use espalier_query::Context;
use espalier_query::update::{Apply, Update as UpdateSpec};
use espalier_store::{
    CollStats, Cursor, Delete, Find, IndexSpec, Insert, Inserted, Namespace, Transaction, Update, Verbosity, Want,
};
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawDoc, Result, Value, ValueRef, doc};

use super::Shared;
use super::indexes::TENANT_INDEX;
use crate::layout::{Checked, Layout, Written};
use crate::stored::{by_id, everything, get};
use crate::write::delete_plain;

impl Layout for Shared {
    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        let refuse = |what: String| Err(Error::new(Code::InvalidOptions, format!("patterns: shared: {what}")));
        let mut cursor = tx.find(ns, &everything())?;
        if cursor.advance()? {
            return refuse(format!(
                "{ns} has documents; declare it on an empty collection, and insert them into the logical ones"
            ));
        }
        drop(cursor);
        let there = tx.collections(ns.db())?.into_iter().find(|there| self.logical(&there.name).is_some());
        if let Some(there) = there {
            return refuse(format!(
                "the collection '{}' exists and fits the template '{}'; rename it, and insert its documents again \
                 under that name",
                there.name, self.name
            ));
        }
        if tx.collection(ns)?.is_some() {
            self.after_create(tx, ns)?;
        }
        Ok(())
    }

    fn after_create(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        tx.create_indexes(ns, &[self.own_index()?]).map(drop)
    }

    fn beside(&self, _: &Namespace) -> Vec<Namespace> {
        Vec::new()
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
        let mut out = Inserted::default();
        for (at, doc) in docs.iter().enumerate() {
            let wrong = match self.wrong(*doc) {
                Some(wrong) => Some(self.not_stored_so(&wrong)),
                None => tx.insert(ns, &[*doc], how)?.errors.into_iter().next().map(|(_, error)| error),
            };
            match wrong {
                None => out.inserted += 1,
                Some(error) => {
                    out.errors.push((at, error));
                    if how.ordered {
                        break;
                    }
                }
            }
        }
        Ok(out)
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
        if let Some(wrong) = self.wrong(after.as_raw()) {
            return Err(self.not_stored_so(&wrong));
        }
        let one = Update {
            filter: by_id(id)?,
            update: Arc::new(UpdateSpec::stored(after.clone())),
            multi: false,
            upsert: false,
            sort: None,
            hint: None,
            want: Want::Nothing,
            projection: None,
            statement: None,
            ..update.clone()
        };
        tx.update(ns, &one)?;
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
        delete_plain(tx, ns, id, delete)
    }

    fn create_indexes(&self, tx: &mut dyn Transaction, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        tx.create_indexes(ns, specs)
    }

    fn drop_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        if name == TENANT_INDEX {
            let message = format!("the index '{name}' belongs to the pattern 'shared' and cannot be dropped");
            return Err(Error::new(Code::InvalidOptions, message));
        }
        tx.drop_index(ns, name)
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

    /// It is declared on an empty collection; one that is to leave it must be empty, too.
    fn unmigrated(&self, out: bool) -> DocBuf {
        if out {
            DocBuf::new()
        } else {
            doc! { "_id": &doc! { "$in": &ArrayBuf::new() } }
        }
    }

    fn migrate(
        &self,
        _: &mut dyn Transaction,
        ns: &Namespace,
        _: ValueRef<'_>,
        out: bool,
        _: &Context,
    ) -> Result<bool> {
        if !out {
            return Ok(false);
        }
        let message = format!(
            "{ns} has documents of the pattern 'shared', which may have the same _id in two logical collections; delete \
             them, then drop the pattern"
        );
        Err(Error::new(Code::IllegalOperation, message))
    }
}

impl Shared {
    fn not_stored_so(&self, wrong: &str) -> Error {
        Error::new(
            Code::IllegalOperation,
            format!("{wrong}; write to the logical collections of the pattern 'shared', '{}'", self.name),
        )
    }
}
