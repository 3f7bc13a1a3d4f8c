//! `arrayFilters`: the conditions that `$[id]` refers to. Each must be used by some path, and each identifier has one.

use std::collections::HashMap;

use espalier_value::{Error, RawDoc, Result, ValueRef};

use crate::context::Context;
use crate::expression::Scope;
use crate::filter::ArrayFilter;

#[derive(Debug, Default)]
pub(super) struct ArrayFilters {
    filters: Vec<Used>,
    by_identifier: HashMap<Box<str>, usize>,
}

#[derive(Debug)]
struct Used {
    filter: ArrayFilter,
    by_a_path: bool,
}

impl ArrayFilters {
    pub fn parse(docs: &[RawDoc<'_>], scope: &Scope) -> Result<ArrayFilters> {
        let mut parsed = ArrayFilters::default();
        for doc in docs {
            let filter = ArrayFilter::parse(*doc, scope)?;
            let id = filter.identifier();
            if parsed.by_identifier.insert(id.into(), parsed.filters.len()).is_some() {
                let message = format!("Found multiple array filters with the same top-level field name {id}");
                return Err(Error::failed_to_parse(message));
            }
            parsed.filters.push(Used { filter, by_a_path: false });
        }
        Ok(parsed)
    }

    /// The number of the filter for an identifier in a path, which counts as used from then on.
    pub fn number(&mut self, identifier: &str) -> Option<usize> {
        let number = *self.by_identifier.get(identifier)?;
        if let Some(used) = self.filters.get_mut(number) {
            used.by_a_path = true;
        }
        Some(number)
    }

    pub fn check_all_used(&self, update: RawDoc<'_>) -> Result<()> {
        match self.filters.iter().find(|f| !f.by_a_path) {
            None => Ok(()),
            Some(unused) => {
                let id = unused.filter.identifier();
                let message = format!("The array filter for identifier '{id}' was not used in the update {update}");
                Err(Error::failed_to_parse(message))
            }
        }
    }

    /// Whether an element is meant: by `$[]` all are.
    pub fn choose(&self, number: Option<usize>, element: ValueRef<'_>, context: &Context) -> Result<bool> {
        match number.and_then(|n| self.filters.get(n)) {
            None => Ok(true),
            Some(used) => used.filter.matches(element, context),
        }
    }
}
