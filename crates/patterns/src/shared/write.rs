//! Writing to a logical collection.

use espalier_query::update::{Apply, Kind};
use espalier_store::{Delete, Insert, Namespace, Transaction, Update, Want};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef, compare};

use super::{Tenant, events};
use crate::bson::id_of;
use crate::layout::Written;
use crate::stored::{by_id, delete, get, insert_one, store};

impl Tenant {
    /// Inserts a document; gives the document's own error.
    pub(super) fn insert_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        doc: RawDoc<'_>,
        how: &Insert,
    ) -> Result<Option<Error>> {
        let physical = self.physical(ns);
        let stored = match self.stored(doc) {
            Ok(stored) => stored,
            Err(error) => return Ok(Some(self.as_logical(error, ns))),
        };
        if let Some(error) = insert_one(tx, &physical, stored.as_raw(), how)? {
            return Ok(Some(self.as_logical(error, ns)));
        }
        events::inserted(tx, &physical, stored.as_raw())?;
        Ok(None)
    }

    pub(super) fn update(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        let (physical, key) = (self.physical(ns), self.stored_id(id));
        let key = ValueRef::Document(key.as_raw());
        let Some(there) = get(tx, &physical, key)? else { return Ok(None) };
        let before = self.logical_of(there.as_raw());
        let Some(found) = update.filter.matches_at(before.as_raw(), &update.context)? else { return Ok(None) };
        let apply = Apply { context: &update.context, position: found.position, inserting: false };
        let Some((after, did)) = update.update.apply_described(before.as_raw(), &apply)? else {
            let image = (update.want != Want::Nothing).then_some(before);
            return Ok(Some(Written { modified: false, image, did: None }));
        };
        if !compare(id_of(after.as_raw()), id_of(before.as_raw())).is_eq() {
            let message = "Performing an update on the path '_id' would modify the immutable field '_id'";
            return Err(Error::new(Code::ImmutableField, message));
        }
        // A replacement may leave it out, but nobody takes it away.
        let gone = after.as_raw().get(&self.shared.discriminator).is_none();
        if gone && update.update.kind() == Kind::Operators {
            return Err(self.not_yours());
        }
        let stored = self.stored(after.as_raw())?;
        store(tx, &physical, key, stored.clone(), update).map_err(|error| self.as_logical(error, ns))?;
        events::updated(tx, &physical, there.as_raw(), stored.as_raw(), &did)?;
        let image = match update.want {
            Want::Nothing => None,
            Want::Before => Some(before),
            Want::After => Some(self.logical_of(stored.as_raw())),
        };
        Ok(Some(Written { modified: true, image, did: Some(did) }))
    }

    pub(super) fn delete(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        how: &Delete,
    ) -> Result<Option<Written>> {
        let (physical, key) = (self.physical(ns), self.stored_id(id));
        let key = ValueRef::Document(key.as_raw());
        let Some(stored) = get(tx, &physical, key)? else { return Ok(None) };
        let before = self.logical_of(stored.as_raw());
        if !how.filter.matches(before.as_raw(), &how.context)? {
            return Ok(None);
        }
        delete(tx, &physical, by_id(key)?, false)?;
        events::deleted(tx, &physical, stored.as_raw())?;
        Ok(Some(Written { modified: true, image: how.want_image.then_some(before), did: None }))
    }

    /// A duplicate key as the logical collection tells it: without the tenant.
    fn as_logical(&self, error: Error, ns: &Namespace) -> Error {
        if error.code() != Code::DuplicateKey {
            return error;
        }
        let Some(info) = error.info() else { return error };
        let strip = |name: &str| -> DocBuf {
            let mut out = DocBuf::new();
            for elem in info.as_raw().get_doc(name).unwrap_or(RawDoc::EMPTY) {
                match (elem.name(), elem.value()) {
                    (field, _) if field == &*self.shared.discriminator => {}
                    ("_id", ValueRef::Document(id)) => drop(out.append("_id", id_of(id))),
                    _ => drop(out.append_elem(elem)),
                }
            }
            out
        };
        let (pattern, value) = (strip("keyPattern"), strip("keyValue"));
        let index = error.message().split_once(" index: ").and_then(|(_, rest)| rest.split(' ').next());
        let message = format!(
            "E11000 duplicate key error collection: {ns} index: {} dup key: {}",
            index.unwrap_or_default(),
            value.as_raw()
        );
        let mut told = DocBuf::new();
        for elem in info.as_raw() {
            match elem.name() {
                "keyPattern" => told.append("keyPattern", &pattern),
                "keyValue" => told.append("keyValue", &value),
                _ => told.append_elem(elem),
            };
        }
        Error::new(Code::DuplicateKey, message).with_info(told)
    }
}
