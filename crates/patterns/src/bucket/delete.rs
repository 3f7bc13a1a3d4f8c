//! Deleting a reading.

use espalier_store::{Delete, Namespace, Transaction};
use espalier_value::{Result, ValueRef};

use super::Bucket;
use crate::layout::Written;
use crate::stored::{get, remove};

impl Bucket {
    pub(super) fn delete(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        how: &Delete,
    ) -> Result<Option<Written>> {
        let found = self.locate(tx, ns, id)?;
        let reading = match &found {
            Some(found) => Some(found.reading.clone()),
            // Not migrated yet, or no more.
            None => get(tx, ns, id)?,
        };
        let Some(reading) = reading else { return Ok(None) };
        if !how.filter.matches(reading.as_raw(), &how.context)? {
            return Ok(None);
        }
        match &found {
            Some(found) => self.take_out(tx, ns, found)?,
            None => remove(tx, ns, id)?,
        }
        Ok(Some(Written { modified: true, image: how.want_image.then_some(reading), did: None }))
    }
}
