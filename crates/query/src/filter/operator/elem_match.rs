//! `$elemMatch`: one element of the array meets all the conditions. With operators (`{$gt: 1, $lt: 5}`) they are
//! about the element itself, as it is; with fields they are a filter on elements that are documents or arrays.

use espalier_value::{Collator, DocBuf, Error, RawDoc, Result, ValueRef};

use super::{Operator, Place};
use crate::context::Context;
use crate::filter::eval::{self, Target};
use crate::filter::parse::{self, Field, Parser};
use crate::filter::{Bounds, ElemMatch, Node, Predicate, Reach, bounds, normalize};

pub(super) const ELEM_MATCH: Operator = Operator {
    name: "$elemMatch",
    place: Place::Field(parse),
    doc: "The value is an array with an element that meets all the conditions.",
};

fn parse(field: &Field<'_>) -> Result<Node> {
    node(field.path, field.argument, field.parser)
}

/// The node for one `$elemMatch`; serves `$all` too.
pub(super) fn node(path: &str, argument: ValueRef<'_>, parser: Parser<'_>) -> Result<Node> {
    let ValueRef::Document(doc) = argument else {
        return Err(Error::bad_value("$elemMatch needs an Object"));
    };
    let parser = parser.nested();
    let source = DocBuf::from_raw(doc);
    Ok(if is_about_values(doc) {
        let mut nodes = Vec::new();
        parse::operators("", doc, &parser, &mut nodes)?;
        parse::leaf(path, OfValues { conditions: normalize::normalize(Node::And(nodes), parser.scope), source })
    } else {
        let filter = normalize::normalize(parse::document(doc, &parser)?, parser.scope);
        parse::leaf(path, OfDocuments { filter, source })
    })
}

fn is_about_values(doc: RawDoc<'_>) -> bool {
    let top_level = |name| matches!(super::find(name).map(|op| op.place), Some(Place::Top(_) | Place::TopUnsupported));
    parse::is_operators(doc, true) && !doc.first().is_some_and(|first| top_level(first.name()))
}

#[derive(Debug)]
struct OfValues {
    conditions: Node,
    source: DocBuf,
}

impl Predicate for OfValues {
    fn name(&self) -> &'static str {
        "$elemMatch"
    }

    fn matches(&self, value: Option<ValueRef<'_>>, context: &Context) -> Result<bool> {
        self.matches_at(value, context, &mut None)
    }

    fn matches_at(&self, value: Option<ValueRef<'_>>, context: &Context, position: &mut Option<usize>) -> Result<bool> {
        let Some(ValueRef::Array(array)) = value else { return Ok(false) };
        for (index, element) in array.iter().enumerate() {
            if eval::eval(&self.conditions, Target::Value(element), context, &mut None)? {
                *position = Some(index);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn reach(&self) -> Reach {
        Reach::Itself
    }

    /// One element meets them all, so its key lies in all their bounds. That an element inside the bounds is in an
    /// array at all is not said by the key.
    fn bounds(&self, index: Collator<'_>) -> Option<Bounds> {
        let bounds = bounds::of_element(&self.conditions, index)?;
        Some(Bounds { exact: false, ..bounds })
    }

    fn is_collated(&self) -> bool {
        bounds::is_collated(&self.conditions)
    }

    fn elem_match(&self) -> Option<ElemMatch<'_>> {
        Some(ElemMatch::Value(&self.conditions))
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append("$elemMatch", self.source.as_raw());
    }
}

#[derive(Debug)]
struct OfDocuments {
    filter: Node,
    source: DocBuf,
}

impl Predicate for OfDocuments {
    fn name(&self) -> &'static str {
        "$elemMatch"
    }

    fn matches(&self, value: Option<ValueRef<'_>>, context: &Context) -> Result<bool> {
        self.matches_at(value, context, &mut None)
    }

    fn matches_at(&self, value: Option<ValueRef<'_>>, context: &Context, position: &mut Option<usize>) -> Result<bool> {
        let Some(ValueRef::Array(array)) = value else { return Ok(false) };
        for (index, element) in array.iter().enumerate() {
            // An array is a document whose names are 0, 1, 2, …
            let doc = match element {
                ValueRef::Document(doc) => doc,
                ValueRef::Array(inner) => inner.as_doc(),
                _ => continue,
            };
            if eval::eval(&self.filter, Target::Document(doc), context, &mut None)? {
                *position = Some(index);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn reach(&self) -> Reach {
        Reach::Itself
    }

    fn is_collated(&self) -> bool {
        bounds::is_collated(&self.filter)
    }

    fn elem_match(&self) -> Option<ElemMatch<'_>> {
        Some(ElemMatch::Object(&self.filter))
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append("$elemMatch", self.source.as_raw());
    }
}
