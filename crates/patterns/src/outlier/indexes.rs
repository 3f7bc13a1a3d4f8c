//! Indexes on a collection with the outlier pattern: one on the array covers the batches, too.

use espalier_store::{IndexSpec, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, Result, doc};

use super::{NUMBER, ORDER_INDEX, Outlier, SIZE};
use crate::beside;

impl Outlier {
    /// The indexes every collection of batches has.
    pub(super) fn own_indexes(&self) -> Result<Vec<IndexSpec>> {
        let mut order = DocBuf::new();
        order.append(&self.parent, 1).append(NUMBER, 1);
        let mut sizes = DocBuf::new();
        sizes.append(&self.parent, 1).append(NUMBER, 1).append(SIZE, 1);
        let order = doc! { "key": &order, "name": ORDER_INDEX, "unique": true };
        let sizes = doc! { "key": &sizes, "name": "outlier_sizes" };
        [order, sizes].iter().map(|spec| IndexSpec::parse(spec.as_raw())).collect()
    }

    pub(super) fn create_logical_indexes(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        specs: &[IndexSpec],
    ) -> Result<(usize, usize)> {
        let mut beside = Vec::new();
        for spec in specs {
            if let Some(spec) = self.for_batches(spec)? {
                beside.push(spec);
            }
        }
        let done = tx.create_indexes(ns, specs)?;
        beside::create_indexes(tx, &self.overflow(ns), beside)?;
        Ok(done)
    }

    /// The index that the batches need for one on the collection; `None` if it has nothing to do with the array.
    pub(super) fn for_batches(&self, spec: &IndexSpec) -> Result<Option<IndexSpec>> {
        if spec.is_wildcard() {
            return Ok(None);
        }
        if !spec.parts.iter().any(|part| self.overlaps(&part.path)) {
            return Ok(None);
        }
        if spec.unique {
            return Err(Error::new(
                Code::CannotCreateIndex,
                format!(
                    "a unique index on '{}' cannot be kept across the batches of the pattern 'outlier'; use \
                     $addToSet to keep the elements of one document distinct",
                    self.array
                ),
            ));
        }
        let mut key = DocBuf::new();
        for elem in spec.key() {
            if self.array.is_prefix_of(&espalier_value::Path::new(elem.name())) {
                key.append_elem(elem);
            }
        }
        if key.is_empty() {
            return Ok(None);
        }
        let listed = doc! { "key": &key, "name": spec.name.as_str() };
        IndexSpec::parse(listed.as_raw()).map(Some)
    }

    pub(super) fn drop_logical_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        tx.drop_index(ns, name)?;
        if self.own_indexes()?.iter().any(|index| index.name == name) || name == "_id_" {
            return Ok(());
        }
        let mut left = Vec::new();
        for index in tx.indexes(ns)? {
            left.extend(self.for_batches(&index.spec)?);
        }
        beside::drop_index(tx, &self.overflow(ns), name, left)
    }
}
