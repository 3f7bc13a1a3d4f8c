//! `$all`: each value of a list is found at the path; or, with a list of `$elemMatch`, each of those holds.

use espalier_value::{Collator, DocBuf, Elem, Error, Result, ValueRef};

use super::{Operator, Place, elem_match, eq::Eq, regex::Regex};
use crate::context::Context;
use crate::filter::parse::{Field, is_operators, leaf};
use crate::filter::{Bounds, Node, Predicate};

pub(super) const ALL: Operator =
    Operator { name: "$all", place: Place::Field(parse), doc: "Every value of the list is found at the path." };

fn parse(field: &Field<'_>) -> Result<Node> {
    let ValueRef::Array(array) = field.argument else {
        return Err(Error::bad_value("$all needs an array"));
    };
    let first_is_elem_match = array.iter().next().and_then(elem_match_of).is_some();
    let mut nodes = Vec::new();
    for value in array.iter() {
        nodes.push(match (first_is_elem_match, elem_match_of(value), value) {
            (true, Some(argument), _) => elem_match::node(field.path, argument, field.parser)?,
            (true, None, _) => return Err(Error::bad_value("$all/$elemMatch has to be consistent")),
            (false, _, ValueRef::Regex(pattern, options)) => leaf(field.path, Regex::new(pattern, options)?),
            (false, _, ValueRef::Document(doc)) if is_operators(doc, false) => {
                return Err(Error::bad_value("no $ expressions in $all"));
            }
            (false, ..) => leaf(field.path, Eq::new(value, field.parser.scope)?),
        });
    }
    Ok(if nodes.is_empty() { leaf(field.path, Never) } else { Node::And(nodes) })
}

fn elem_match_of(value: ValueRef<'_>) -> Option<ValueRef<'_>> {
    let first: Elem<'_> = value.as_doc()?.first()?;
    (first.name() == "$elemMatch").then(|| first.value())
}

/// `{$all: []}` matches nothing.
#[derive(Debug)]
struct Never;

impl Predicate for Never {
    fn name(&self) -> &'static str {
        "$all"
    }

    fn matches(&self, _: Option<ValueRef<'_>>, _: &Context) -> Result<bool> {
        Ok(false)
    }

    fn bounds(&self, _: Collator<'_>) -> Option<Bounds> {
        Some(Bounds::nothing())
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append_array("$all", |_| {});
    }
}
