//! Indexes: those on counters hold the stored values; a unique one could not be kept.

use espalier_store::{IndexSpec, Namespace, Transaction};
use espalier_value::{Code, Error, Result};

use super::Approximate;

impl Approximate {
    /// Whether an index has entries for the values of a counter.
    pub(super) fn is_on_counter(&self, spec: &IndexSpec) -> bool {
        let by_key = spec.parts.iter().any(|part| self.counters.overlap(&part.path));
        by_key || spec.partial.as_ref().is_some_and(|filter| self.counters.are_read(&filter.dependencies()))
    }

    pub(super) fn refuse_unique<'s>(&self, specs: impl Iterator<Item = &'s IndexSpec>) -> Result<()> {
        for spec in specs {
            if spec.unique && !spec.is_id() && self.is_on_counter(spec) {
                return Err(Error::new(
                    Code::CannotCreateIndex,
                    format!(
                        "the unique index '{}' is on a counter of the pattern 'approximate', whose increments wait \
                         outside of the document; make it not unique, or leave the counter out of it",
                        spec.name
                    ),
                ));
            }
        }
        Ok(())
    }

    pub(super) fn refuse_unique_there(&self, at: &dyn Transaction, ns: &Namespace) -> Result<()> {
        let there = at.indexes(ns)?;
        self.refuse_unique(there.iter().map(|index| &index.spec))
    }
}
