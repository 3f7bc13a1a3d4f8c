//! Conditions on one value: what `$pull` takes out, and which elements an array filter means.

use std::sync::Arc;

use espalier_value::{Code, Collation, Collator, Error, RawDoc, Result, Value, ValueRef};

use super::eval::{self, Target};
use super::{Node, normalize, operator, parse};
use crate::context::Context;
use crate::expression::Scope;

/// The condition of a `$pull`: a value, operators (`{$gt: 5}`), or a filter on elements that are documents.
#[derive(Debug)]
pub struct ValuePredicate {
    test: Test,
}

#[derive(Debug)]
enum Test {
    Equal(Value<'static>, Option<Arc<Collation>>),
    /// Operators on the value as though it were a field's.
    Field(Node),
    /// A filter on a document; other values never match.
    Document(Node),
}

impl ValuePredicate {
    pub fn parse(condition: ValueRef<'_>, scope: &Scope) -> Result<ValuePredicate> {
        let parser = parse::Parser::restricted(scope);
        let test = match condition {
            ValueRef::Document(doc) if doc.first().is_some_and(|e| is_value_operator(e.name())) => {
                let mut nodes = Vec::new();
                parse::operators("", doc, &parser, &mut nodes)?;
                Test::Field(normalize::normalize(Node::And(nodes), scope))
            }
            ValueRef::Document(doc) => Test::Document(normalize::normalize(parse::document(doc, &parser)?, scope)),
            ValueRef::Regex(pattern, options) => {
                Test::Field(parse::leaf("", operator::regex::Regex::new(pattern, options)?))
            }
            value => Test::Equal(Value::own(value), scope.collation().clone()),
        };
        Ok(ValuePredicate { test })
    }

    pub fn matches(&self, value: ValueRef<'_>, context: &Context) -> Result<bool> {
        match &self.test {
            Test::Equal(wanted, collation) => Ok(Collator::of(collation).equal(value, wanted.or_null())),
            Test::Field(node) => eval::eval(node, Target::Field(value), context, &mut None),
            Test::Document(node) => match value {
                ValueRef::Document(doc) => eval::eval(node, Target::Document(doc), context, &mut None),
                _ => Ok(false),
            },
        }
    }
}

/// Whether a `$pull` condition that starts with this name is about the element itself. `$not` is not one of them
/// in MongoDB, and is refused like any unknown top-level name.
fn is_value_operator(name: &str) -> bool {
    name != "$not"
        && operator::find(name)
            .is_some_and(|op| !matches!(op.place, operator::Place::Top(_) | operator::Place::TopUnsupported))
}

/// One of an update's `arrayFilters`: `{"elem.grade": {$gte: 85}}` says which elements `$[elem]` means.
#[derive(Debug)]
pub struct ArrayFilter {
    identifier: Box<str>,
    node: Node,
}

impl ArrayFilter {
    pub fn parse(doc: RawDoc<'_>, scope: &Scope) -> Result<ArrayFilter> {
        let parser = parse::Parser::restricted(scope);
        let parsed = parse::document(doc, &parser).map_err(|e| e.context("Error parsing array filter"))?;
        let node = normalize::normalize(parsed, scope);
        let mut identifier = None;
        find_identifier(&node, &mut identifier)?;
        let Some(identifier) = identifier else {
            return Err(Error::failed_to_parse(
                "Cannot use an expression without a top-level field name in arrayFilters",
            ));
        };
        let mut letters = identifier.chars();
        let valid =
            letters.next().is_some_and(|c| c.is_ascii_lowercase()) && letters.all(|c| c.is_ascii_alphanumeric());
        if !valid {
            return Err(Error::bad_value(format!(
                "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string \
                 beginning with a lowercase letter, found '{identifier}'"
            )));
        }
        Ok(ArrayFilter { identifier: identifier.into(), node })
    }

    /// The name between the brackets of `$[name]`.
    pub fn identifier(&self) -> &str {
        &self.identifier
    }

    pub fn matches(&self, element: ValueRef<'_>, context: &Context) -> Result<bool> {
        eval::eval(&self.node, Target::Field(element), context, &mut None)
    }
}

/// All paths must start with one name.
fn find_identifier<'n>(node: &'n Node, found: &mut Option<&'n str>) -> Result<()> {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.iter().try_for_each(|node| find_identifier(node, found))
        }
        Node::Not(node) => find_identifier(node, found),
        Node::Leaf(leaf) => {
            let name = leaf.path.first();
            match *found {
                Some(other) if other != name => Err(Error::new(
                    Code::FailedToParse,
                    format!(
                        "Error parsing array filter :: caused by :: Expected a single top-level field name, found \
                         '{other}' and '{name}'"
                    ),
                )),
                _ => {
                    *found = Some(name);
                    Ok(())
                }
            }
        }
        Node::Expr(_) | Node::Whole(_) => Ok(()),
    }
}
