//! What an accumulator's file exports.

use std::sync::Arc;

use espalier_value::{Collation, Result, ValueRef};

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
    Unary(Make),
    /// Reads its argument itself.
    Special(fn(ValueRef<'_>, &Scope) -> Result<AccumulatorSpec>),
    Unsupported,
}

/// Makes the state of a new group.
pub(super) type Make = fn(Given<'_>) -> State;

/// What a state may depend on.
#[derive(Clone, Copy)]
pub(super) struct Given<'g> {
    /// `n`; 1 where there is none.
    pub count: usize,
    pub collation: &'g Option<Arc<Collation>>,
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
