//! What an accumulator's file exports.

use espalier_value::{Result, ValueRef};

use super::{AccumulatorSpec, State};
use crate::expression::Scope;
use crate::registry;

pub(super) struct Definition {
    /// With its `$`.
    pub name: &'static str,
    pub parse: Parse,
    /// One sentence for the compatibility table.
    pub doc: &'static str,
}

pub(super) enum Parse {
    /// One expression as argument. The state is made without regard to the number given.
    Unary(fn(usize) -> State),
    /// Reads its argument itself.
    Special(fn(ValueRef<'_>, &Scope) -> Result<AccumulatorSpec>),
    Unsupported,
}

impl Definition {
    pub fn entry(&self) -> registry::Entry {
        let state = match self.parse {
            Parse::Unsupported => registry::State::KnownUnsupported,
            _ => registry::State::Supported,
        };
        registry::Entry { name: self.name, state, doc: self.doc }
    }
}
