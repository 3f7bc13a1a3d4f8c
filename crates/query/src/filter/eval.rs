//! Runs a filter tree on a document, or on one value.

use espalier_value::{RawDoc, Result, ValueRef};

use super::walk::{self, Visit};
use super::{Leaf, Node, Predicate, Reach};
use crate::context::Context;
use crate::expression::{Env, truthy};

/// What a node is run on.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    /// Paths lead through this document.
    Document(RawDoc<'a>),
    /// The first name of every path stands for this value: `$pull` conditions and array filters.
    Field(ValueRef<'a>),
    /// Paths are ignored: the value is tested as it is, not element by element. `$elemMatch` with operators.
    Value(ValueRef<'a>),
}

/// Runs a node; a match through an array leaves the element's index in `position`.
pub(crate) fn eval(node: &Node, target: Target<'_>, context: &Context, position: &mut Option<usize>) -> Result<bool> {
    match node {
        Node::Leaf(leaf) => self::leaf(leaf, target, context, position),
        Node::And(nodes) => {
            for node in nodes {
                if !eval(node, target, context, position)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        // Which branch matched is nobody's business: positions are not taken from alternatives and negations.
        Node::Or(nodes) => any(nodes, target, context),
        Node::Nor(nodes) => Ok(!any(nodes, target, context)?),
        Node::Not(node) => Ok(!eval(node, target, context, &mut None)?),
        Node::Expr(expression) => {
            let doc = document_of(target);
            Ok(truthy(&expression.eval(&Env::new(doc, context))?))
        }
        Node::Whole(predicate) => predicate.matches(document_of(target), context),
    }
}

fn any(nodes: &[Node], target: Target<'_>, context: &Context) -> Result<bool> {
    for node in nodes {
        if eval(node, target, context, &mut None)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[inline]
fn leaf(leaf: &Leaf, target: Target<'_>, context: &Context, position: &mut Option<usize>) -> Result<bool> {
    let predicate = &*leaf.predicate;
    let parts = leaf.path.parts();
    let mut visitor = Try { predicate, reach: predicate.reach(), context };
    match target {
        Target::Document(doc) => walk::document(doc, parts, &mut visitor, position),
        Target::Field(value) => walk::value(Some(value), parts.get(1..).unwrap_or_default(), &mut visitor, position),
        Target::Value(value) => predicate.matches_at(Some(value), context, position),
    }
}

/// `$expr` and whole-document predicates are refused by the parser where the target is no document.
fn document_of(target: Target<'_>) -> RawDoc<'_> {
    match target {
        Target::Document(doc) | Target::Field(ValueRef::Document(doc)) | Target::Value(ValueRef::Document(doc)) => doc,
        _ => RawDoc::EMPTY,
    }
}

struct Try<'a> {
    predicate: &'a dyn Predicate,
    reach: Reach,
    context: &'a Context,
}

impl Visit for Try<'_> {
    #[inline]
    fn visit(&mut self, value: Option<ValueRef<'_>>, position: &mut Option<usize>) -> Result<bool> {
        self.predicate.matches_at(value, self.context, position)
    }

    #[inline]
    fn reach(&self) -> Reach {
        self.reach
    }
}
