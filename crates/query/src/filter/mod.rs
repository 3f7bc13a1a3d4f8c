//! Filters: the query language of `find`, `$match` and friends. Parsed once into a tree of nodes whose leaves are
//! predicates on a path; `matches` runs it on a raw document, `bounds` tells the planner what an index could answer.
//!
//! A filter goes through four hands: [`parse`] turns the document into nodes and finds every error, [`normalize`]
//! flattens and sorts them as MongoDB does (the order decides which array position an update's `$` means), [`eval`]
//! runs them with the help of [`walk`], which leads a path through documents and arrays.

use std::sync::Arc;

use espalier_value::{Collation, Collator, DocBuf, Path, RawDoc, Result, ValueRef};

use crate::context::Context;
use crate::expression::{Deps, Expression, Scope};
use crate::registry;

pub mod bounds;
mod brackets;
mod describe;
mod equalities;
mod eval;
mod explain;
mod normalize;
mod operator;
mod parse;
mod schema;
mod value_predicate;
pub(crate) mod walk;

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod tests;

pub use bounds::{Bounds, Interval};
pub(crate) use operator::regex::compile as compile_regex;
pub use value_predicate::{ArrayFilter, ValuePredicate};

/// A parsed filter.
#[derive(Debug)]
pub struct Filter {
    source: DocBuf,
    root: Node,
    collation: Option<Arc<Collation>>,
}

/// Where a document matched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Match {
    /// The index of the array element that the last array condition met: what `$` stands for in updates and
    /// projections.
    pub position: Option<usize>,
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

impl Node {
    /// Whether a document meets it.
    pub fn matches(&self, doc: RawDoc<'_>, context: &Context) -> Result<bool> {
        eval::eval(self, eval::Target::Document(doc), context, &mut None)
    }
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

    /// As `matches`, and notes the array position if the predicate itself looks through an array (`$elemMatch`).
    fn matches_at(
        &self,
        value: Option<ValueRef<'_>>,
        context: &Context,
        _position: &mut Option<usize>,
    ) -> Result<bool> {
        self.matches(value, context)
    }

    /// Whether an array at the end of the path is tried element by element too (`$gt`) or only as itself (`$size`).
    fn reach(&self) -> Reach {
        Reach::Elements
    }

    /// What an index on the path could answer; `None` if nothing. Strings are given as the index holds them, whose
    /// collation this is.
    fn bounds(&self, _index: Collator<'_>) -> Option<Bounds> {
        None
    }

    /// What an index could answer to the negation. `multikey`: the index has entries of array elements.
    fn negated_bounds(&self, _multikey: bool, index: Collator<'_>) -> Option<Bounds> {
        self.bounds(index).map(|bounds| bounds.negated())
    }

    /// What an index that holds no element of an array says exactly: every key inside is a match, every other is none.
    /// `None` if the key does not tell.
    fn exact_bounds(&self, index: Collator<'_>) -> Option<Bounds> {
        self.bounds(index).filter(|bounds| bounds.exact)
    }

    /// Whether it compares strings by the filter's collation, so that an index of another one can say nothing about it.
    fn is_collated(&self) -> bool {
        false
    }

    /// The value of an equality, which an upsert takes over into the new document.
    fn equality(&self) -> Option<ValueRef<'_>> {
        None
    }

    /// The conditions inside a `$elemMatch`, for the planner.
    fn elem_match(&self) -> Option<ElemMatch<'_>> {
        None
    }

    /// The operator's argument as it would be written: `{$gt: 5}`, for `explain`.
    fn describe(&self, out: &mut DocBuf);
}

/// What stands inside a `$elemMatch`.
#[derive(Clone, Copy, Debug)]
pub enum ElemMatch<'a> {
    /// `{$elemMatch: {b: 1}}`: a filter on each element that is a document; its paths continue the leaf's path.
    Object(&'a Node),
    /// `{$elemMatch: {$gt: 1}}`: conditions on each element itself; their paths are empty.
    Value(&'a Node),
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
    /// The operator's name, `$jsonSchema`.
    fn name(&self) -> &'static str;

    fn matches(&self, doc: RawDoc<'_>, context: &Context) -> Result<bool>;

    /// The operator and its argument as they would be written, for `explain`.
    fn describe(&self, out: &mut DocBuf);
}

impl Filter {
    /// Parses the whole filter before anything runs; every error has MongoDB's code.
    pub fn parse(doc: RawDoc<'_>, scope: &Scope) -> Result<Filter> {
        let filter = Filter::parse_deferring(doc, scope)?;
        scope.settle()?;
        Ok(filter)
    }

    /// As [`Filter::parse`] within something larger: what fails in a constant part of an expression waits in the scope
    /// until that is parsed too.
    pub(crate) fn parse_deferring(doc: RawDoc<'_>, scope: &Scope) -> Result<Filter> {
        let root = normalize::normalize(parse::document(doc, &parse::Parser::top(scope))?, scope);
        Ok(Filter { source: DocBuf::from_raw(doc), root, collation: scope.collation().clone() })
    }

    /// As [`Filter::parse`], but with its conditions in the order in which they are written: the last of them to meet
    /// an array decides what the positional `$` of a projection means.
    pub fn parse_in_order(doc: RawDoc<'_>, scope: &Scope) -> Result<Filter> {
        let root = parse::document(doc, &parse::Parser::top(scope))?;
        Ok(Filter { source: DocBuf::from_raw(doc), root, collation: scope.collation().clone() })
    }

    /// The filter that every document matches.
    pub fn empty() -> Filter {
        Filter { source: DocBuf::new(), root: Node::And(Vec::new()), collation: None }
    }

    /// True if every document matches without being looked at.
    pub fn is_empty(&self) -> bool {
        matches!(&self.root, Node::And(nodes) if nodes.is_empty())
    }

    /// The document it was parsed from.
    pub fn source(&self) -> RawDoc<'_> {
        self.source.as_raw()
    }

    /// How it compares strings.
    pub fn collator(&self) -> Collator<'_> {
        Collator::of(&self.collation)
    }

    /// The filter as it was understood, each condition with its operator.
    pub fn describe(&self) -> DocBuf {
        describe::describe(&self.root).unwrap_or_else(|| self.source.clone())
    }

    pub fn root(&self) -> &Node {
        &self.root
    }

    #[inline]
    pub fn matches(&self, doc: RawDoc<'_>, context: &Context) -> Result<bool> {
        eval::eval(&self.root, eval::Target::Document(doc), context, &mut None)
    }

    /// As [`Filter::matches`], and says which array element it was.
    pub fn matches_at(&self, doc: RawDoc<'_>, context: &Context) -> Result<Option<Match>> {
        let mut position = None;
        let hit = eval::eval(&self.root, eval::Target::Document(doc), context, &mut position)?;
        Ok(hit.then_some(Match { position }))
    }

    /// What it reads of a document.
    pub fn dependencies(&self) -> Deps {
        let mut deps = Deps::default();
        crate::stage::collect_filter(&self.root, &mut deps);
        deps
    }

    /// Why a document does not match, in the shape of a validation error's `errInfo`. For a document that failed; what
    /// it says about one that matches means nothing.
    pub fn explain_failure(&self, doc: RawDoc<'_>, context: &Context) -> DocBuf {
        let scope = Scope::default().collated(self.collation.clone());
        explain::explain(self.source.as_raw(), doc, context, &scope)
    }

    /// The fields an upsert takes over from the filter: equalities reached through `$and` alone. Two that set one
    /// path, or a path and one below it, cannot both be honoured and are an error.
    pub fn equalities(&self) -> Result<Vec<(&Path, ValueRef<'_>)>> {
        equalities::collect(&self.root)
    }
}

/// Every query operator of MongoDB 6.0 and whether it can be used.
pub fn registry() -> impl Iterator<Item = registry::Entry> {
    operator::ALL.iter().map(|operator| operator.entry())
}
