//! Writing one logical document: increments go to the pending document; a write that has nothing to do with the counters
//! goes to the stored one; every other is applied to the document with its increments, which then wait no longer.

use espalier_query::update::{Apply, Description, Kind};
use espalier_store::{Delete, Insert, Inserted, Namespace, Transaction, Update, Want};
use espalier_value::{DocBuf, RawDoc, Result, ValueRef, compare};

use super::Approximate;
use crate::bson::{value_at, with_value};
use crate::layout::Written;
use crate::stored::{insert_each, insert_one, remove, replace};
use crate::validator::Validator;

impl Approximate {
    pub(super) fn insert_all(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
        how: &Insert,
    ) -> Result<Inserted> {
        if docs.iter().all(|doc| self.may_bring(*doc)) {
            return tx.insert(ns, docs, how);
        }
        insert_each(docs, how, |doc| match self.may_bring(doc) {
            false => Ok(Some(self.not_yours())),
            true => insert_one(tx, ns, doc, how),
        })
    }

    /// A document that was flushed elsewhere brings its stamp along.
    fn may_bring(&self, doc: RawDoc<'_>) -> bool {
        matches!(value_at(doc, self.stamp.parts()), None | Some(ValueRef::DateTime(_) | ValueRef::Null))
    }

    pub(super) fn update(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        let touched = update.update.touched_paths();
        let names_stamp = touched.is_some_and(|paths| paths.iter().any(|path| self.stamp.is_prefix_of(path)));
        if names_stamp && update.update.kind() == Kind::Operators {
            return Err(self.not_yours());
        }
        let Some(stored) = self.load(tx, ns, id)? else { return Ok(None) };
        if self.appends(update) && self.can_wait(stored.base.as_raw()) {
            return self.append(tx, ns, id, &stored, &[update])?.pop().unwrap_or(Ok(None));
        }
        let before = stored.logical();
        let Some(found) = update.filter.matches_at(before.as_raw(), &update.context)? else { return Ok(None) };
        let apply = Apply { context: &update.context, position: found.position, inserting: false };
        let Some((after, mut did)) = update.update.apply_described(before.as_raw(), &apply)? else {
            let image = (update.want != Want::Nothing).then_some(before);
            return Ok(Some(Written { modified: false, image, did: None }));
        };
        let mut after = match self.with_own_stamp(before.as_raw(), after.as_raw())? {
            None => after,
            Some(kept) => {
                // It is not what the update says.
                did = Description::Replaced;
                kept
            }
        };
        if let Some(validator) = Validator::of(tx, ns)?.filter(|_| !update.bypass_validation) {
            validator.check(after.as_raw(), Some(before.as_raw()), &update.context)?;
        }
        let beside = |path: &espalier_value::Path| !self.counters.overlap(path) && !path.is_prefix_of(&self.stamp);
        let aside = touched.is_some_and(|paths| paths.iter().all(beside));
        match &stored.row {
            // The order of the fields is that of their coming.
            Some(row)
                if aside && self.can_wait(after.as_raw()) && !row.creates(stored.base.as_raw(), &self.counters.0) =>
            {
                if let Some(base) = update.update.apply(stored.base.as_raw(), &apply)? {
                    replace(tx, ns, base)?;
                }
            }
            Some(_) => {
                if value_at(after.as_raw(), self.stamp.parts()).is_some() {
                    after = self.stamped(after.as_raw(), update.context.now_ms);
                    if let Description::Updated(description) = &did {
                        let told = self.with_stamp_told(description.as_raw(), update.context.now_ms);
                        did = Description::Updated(told);
                    }
                }
                self.forget(tx, ns, id, &stored)?;
                replace(tx, ns, after.clone())?;
            }
            None => {
                if !aside {
                    self.forget(tx, ns, id, &stored)?;
                }
                replace(tx, ns, after.clone())?;
            }
        }
        let image = match update.want {
            Want::Nothing => None,
            Want::Before => Some(before),
            Want::After => Some(after),
        };
        Ok(Some(Written { modified: true, image, did: Some(did) }))
    }

    /// A document that is written whole may bring a stamp along, as it was read some time ago: the one that is there stays.
    fn with_own_stamp(&self, before: RawDoc<'_>, after: RawDoc<'_>) -> Result<Option<DocBuf>> {
        let at = |doc| value_at(doc, self.stamp.parts());
        match (at(before), at(after)) {
            (_, None) => Ok(None),
            (Some(old), Some(new)) if compare(old, new).is_eq() => Ok(None),
            (Some(old), Some(ValueRef::DateTime(_))) => Ok(Some(with_value(after, self.stamp.parts(), old))),
            (None, Some(ValueRef::DateTime(_) | ValueRef::Null)) => Ok(None),
            _ => Err(self.not_yours()),
        }
    }

    pub(super) fn delete(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        how: &Delete,
    ) -> Result<Option<Written>> {
        let Some(stored) = self.load(tx, ns, id)? else { return Ok(None) };
        let logical = stored.logical();
        if !how.filter.matches(logical.as_raw(), &how.context)? {
            return Ok(None);
        }
        self.forget(tx, ns, id, &stored)?;
        remove(tx, ns, id)?;
        Ok(Some(Written { modified: true, image: how.want_image.then_some(logical), did: None }))
    }

    /// Increments of one document that many clients sent at once.
    pub(super) fn append_together(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        updates: &[&Update],
    ) -> Result<Option<Vec<Result<Option<Written>>>>> {
        match self.load(tx, ns, id)? {
            None => Ok(Some(updates.iter().map(|_| Ok(None)).collect())),
            Some(stored) if self.can_wait(stored.base.as_raw()) => self.append(tx, ns, id, &stored, updates).map(Some),
            Some(_) => Ok(None),
        }
    }
}
