//! Updating a reading: in its bucket, or on to another if it changes its group.

use espalier_query::update::Apply;
use espalier_store::{Namespace, Transaction, Update, Want};
use espalier_value::{RawDoc, Result, ValueRef};

use super::Bucket;
use super::place::Found;
use super::stored::Entry;
use crate::bson::id_of;
use crate::layout::Written;
use crate::stored::{get, remove};
use crate::validator::Validator;

impl Bucket {
    pub(super) fn update(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        let found = self.locate(tx, ns, id)?;
        let before = match &found {
            Some(found) => Some(found.reading.clone()),
            // Not migrated yet.
            None => get(tx, ns, id)?,
        };
        let Some(before) = before else { return Ok(None) };
        let Some(matched) = update.filter.matches_at(before.as_raw(), &update.context)? else { return Ok(None) };
        let apply = Apply { context: &update.context, position: matched.position, inserting: false };
        let Some((after, did)) = update.update.apply_described(before.as_raw(), &apply)? else {
            let image = (update.want != Want::Nothing).then_some(before);
            return Ok(Some(Written { modified: false, image, did: None }));
        };
        if !update.bypass_validation
            && let Some(validator) = Validator::of(tx, ns)?
        {
            validator.check(after.as_raw(), Some(before.as_raw()), &update.context)?;
        }
        self.put(tx, ns, found.as_ref(), before.as_raw(), after.as_raw(), update)?;
        let image = match update.want {
            Want::Nothing => None,
            Want::Before => Some(before),
            Want::After => Some(after),
        };
        Ok(Some(Written { modified: true, image, did: Some(did) }))
    }

    /// Stores the new state of a reading; without `found`, it is a plain document so far.
    fn put(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        found: Option<&Found>,
        before: RawDoc<'_>,
        after: RawDoc<'_>,
        update: &Update,
    ) -> Result<()> {
        let group = self.group(after)?;
        // A document that is not migrated yet may belong nowhere so far.
        let stays = found.is_some() && self.group(before)? == group;
        let same_key = stays && self.key_of(before) == self.key_of(after);
        if !self.key.is_empty()
            && !same_key
            && self.taken_keys(tx, ns, &[after], Some(id_of(after)))?.contains(&self.key_of(after))
        {
            return Err(self.duplicate_key(ns, after));
        }
        match found {
            Some(found) => {
                if stays {
                    let mut entries = self.entries(found.stored.as_raw());
                    entries[found.position] = Entry::New(after);
                    if self.fits(&entries) {
                        return self.rewrite(tx, ns, found.stored.as_raw(), &entries);
                    }
                }
                self.take_out(tx, ns, found)?;
            }
            None => remove(tx, ns, id_of(before))?,
        }
        self.fill(tx, ns, &[after], &update.context)
    }
}
