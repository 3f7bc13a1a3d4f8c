//! The arguments of one call of a lazy operator.

use std::sync::Arc;

use espalier_value::{Collation, Collator, Result, Value};

use super::env::Env;
use super::node::Node;

/// Arguments that are evaluated when they are asked for.
pub(crate) struct Given<'e, 'a> {
    nodes: &'a [Node],
    env: &'e Env<'a>,
    collation: &'a Option<Arc<Collation>>,
}

impl<'e, 'a> Given<'e, 'a> {
    pub fn new(nodes: &'a [Node], env: &'e Env<'a>, collation: &'a Option<Arc<Collation>>) -> Given<'e, 'a> {
        Given { nodes, env, collation }
    }

    /// How the call compares values.
    pub fn collator(&self) -> Collator<'a> {
        Collator::of(self.collation)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The argument at a place; missing if there is none.
    pub fn at(&self, at: usize) -> Result<Value<'a>> {
        self.nodes.get(at).map_or(Ok(Value::Missing), |node| node.eval(self.env))
    }

    /// The argument at a place, if there is one.
    pub fn optional(&self, at: usize) -> Result<Option<Value<'a>>> {
        self.nodes.get(at).map(|node| node.eval(self.env)).transpose()
    }

    /// All of them in order, each evaluated as the iterator comes to it.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>>> {
        self.nodes.iter().map(|node| node.eval(self.env))
    }
}
