//! Deleting a logical document: the batches go with it.

use espalier_store::{Delete, Namespace, Transaction};
use espalier_value::{Result, ValueRef};

use super::Outlier;
use crate::layout::Written;
use crate::stored::{by, by_id, delete, get};

impl Outlier {
    pub(super) fn delete(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        how: &Delete,
    ) -> Result<Option<Written>> {
        let Some(main) = get(tx, ns, id)? else { return Ok(None) };
        let main = main.as_raw();
        let reads_array = self.is_read(&how.filter.dependencies());
        let batches = if reads_array || how.want_image { self.batches_of(tx, ns, main)? } else { Vec::new() };
        let image = (reads_array || how.want_image).then(|| self.logical(main, &batches));
        let seen = image.as_ref().map_or(main, |logical| logical.as_raw());
        if !how.filter.matches(seen, &how.context)? {
            return Ok(None);
        }
        delete(tx, ns, by_id(id)?, false)?;
        if self.batch_count(main) > 0 {
            delete(tx, &self.overflow(ns), by(&self.parent, id)?, true)?;
        }
        Ok(Some(Written { modified: true, image: image.filter(|_| how.want_image), did: None }))
    }
}
