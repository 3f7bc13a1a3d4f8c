//! `arrayFilters`: the conditions that `$[id]` refers to.

use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

use crate::context::Context;
use crate::expression::Scope;

#[derive(Debug, Default)]
pub(super) struct ArrayFilters {}

impl ArrayFilters {
    pub fn parse(docs: &[RawDoc<'_>], _scope: &Scope) -> Result<ArrayFilters> {
        if !docs.is_empty() {
            return Err(Error::new(Code::CommandNotSupported, "arrayFilters are not supported yet"));
        }
        Ok(ArrayFilters {})
    }

    pub fn number(&mut self, _identifier: &str) -> Option<usize> {
        None
    }

    pub fn check_all_used(&self, _update: RawDoc<'_>) -> Result<()> {
        Ok(())
    }

    pub fn choose(&self, filter: Option<usize>, _element: ValueRef<'_>, _context: &Context) -> Result<bool> {
        Ok(filter.is_none())
    }
}
