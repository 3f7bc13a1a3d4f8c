//! `$exists`: the path leads to a value, null included; or, with a false argument, leads to none.

use espalier_value::{Collator, DocBuf, Result, Value, ValueRef};

use super::{Operator, Place};
use crate::context::Context;
use crate::expression::truthy;
use crate::filter::parse::Field;
use crate::filter::{Bounds, Interval, Node, Predicate};

pub(super) const EXISTS: Operator =
    Operator { name: "$exists", place: Place::Field(parse), doc: "The field exists, or with false does not." };

fn parse(field: &Field<'_>) -> Result<Node> {
    let leaf = field.leaf(Exists);
    Ok(if truthy(&Value::Ref(field.argument)) { leaf } else { Node::Not(Box::new(leaf)) })
}

#[derive(Debug)]
struct Exists;

impl Predicate for Exists {
    fn name(&self) -> &'static str {
        "$exists"
    }

    fn matches(&self, value: Option<ValueRef<'_>>, _: &Context) -> Result<bool> {
        Ok(value.is_some())
    }

    fn bounds(&self, _: Collator<'_>) -> Option<Bounds> {
        Some(Bounds::everything())
    }

    /// What is missing is a null in the index.
    fn negated_bounds(&self, _: bool, _: Collator<'_>) -> Option<Bounds> {
        Some(Bounds::inexact(vec![Interval::point(ValueRef::Null)]))
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append("$exists", true);
    }
}
