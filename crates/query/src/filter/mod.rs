//! Filters: the query language of `find`, `$match` and friends. Parsed once into a tree of nodes whose leaves are
//! predicates on a path; `matches` runs it on a raw document, `bounds` tells the planner what an index could answer.

use espalier_value::{Path, RawDoc, Result, ValueRef};

use crate::context::Context;
use crate::expression::Expression;

pub mod bounds;

pub use bounds::{Bounds, Interval};

/// A parsed filter.
#[derive(Debug)]
pub struct Filter {
    source: espalier_value::DocBuf,
    root: Node,
}

/// A node of the filter tree. The planner reads it; only `matches` gives it meaning.
#[derive(Debug)]
pub enum Node {
    /// All of them; empty is true.
    And(Vec<Node>),
    Or(Vec<Node>),
    Nor(Vec<Node>),
    /// A predicate on the values at a path.
    Leaf(Leaf),
    /// `{path: {$not: …}}`: no value at the path satisfies it.
    Not(Box<Node>),
    Expr(Box<Expression>),
    /// Anything that looks at the whole document: `$jsonSchema`, `$sampleRate`, `$alwaysTrue`, …
    Whole(Box<dyn WholePredicate>),
}

#[derive(Debug)]
pub struct Leaf {
    pub path: Path,
    pub predicate: Box<dyn Predicate>,
}

/// A test of one candidate value. The driver finds the candidates: the values a path leads to, through arrays.
pub trait Predicate: std::fmt::Debug + Send + Sync {
    /// The operator's name, `$gt`.
    fn name(&self) -> &'static str;

    /// `None` where the path leads to nothing.
    fn matches(&self, value: Option<ValueRef<'_>>, context: &Context) -> Result<bool>;

    /// Whether an array at the end of the path is tried element by element too (`$gt`) or only as itself (`$size`).
    fn reach(&self) -> Reach {
        Reach::Elements
    }

    /// What an index on the path could answer; `None` if nothing.
    fn bounds(&self) -> Option<Bounds> {
        None
    }

    /// The value of an equality, which an upsert takes over into the new document.
    fn equality(&self) -> Option<ValueRef<'_>> {
        None
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// The value itself, and if it is an array each of its elements.
    Elements,
    /// The value itself only.
    Itself,
}

/// A test of the document as a whole.
pub trait WholePredicate: std::fmt::Debug + Send + Sync {
    fn matches(&self, doc: RawDoc<'_>, context: &Context) -> Result<bool>;
}
