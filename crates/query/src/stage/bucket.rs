//! `$bucket` groups documents into ranges of a value: a `$group` by the range's lower bound, in order.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef, doc};

use super::group::{self, Group};
use super::sort::SortStage;
use super::{Definition, Parse, Parser, Stages};
use crate::accumulator::{self, AccumulatorSpec};
use crate::expression::{Expression, Scope};
use crate::sort::Sort;

pub(super) static BUCKET: Definition =
    Definition { name: "$bucket", parse: Parse::Stage(parse), doc: "Groups documents into ranges of a value." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let ValueRef::Document(spec) = argument else {
        let found = argument.ty().name();
        return refuse(40201, format!("Argument to $bucket stage must be an object, but found type: {found}."));
    };
    let (mut group_by, mut bounds, mut default, mut fields) = (None, None, None, None);
    for elem in spec {
        let value = elem.value();
        match elem.name() {
            "groupBy" => {
                if !is_expression(value) {
                    let what = "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression";
                    return refuse(40202, format!("{what}, but found: {value}."));
                }
                group_by = Some(value);
            }
            "boundaries" => bounds = Some(parse_boundaries(value, parser.scope)?),
            "default" => {
                let Some(constant) = constant(value, parser.scope)? else {
                    let what = "The $bucket 'default' field must be a constant expression";
                    return refuse(40195, format!("{what}, but found: {value}."));
                };
                default = Some(constant);
            }
            "output" => fields = Some(parse_output(value, parser.scope, "$bucket", 40196)?),
            other => return refuse(40197, format!("Unrecognized option to $bucket: {other}.")),
        }
    }
    let (Some(group_by), Some(bounds)) = (group_by, bounds) else {
        return refuse(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.".into());
    };
    if let (Some(default), [low, .., high]) = (&default, bounds.as_slice())
        && parser.scope.collator().compare(default.or_null(), low.or_null()).is_ge()
        && parser.scope.collator().compare(default.or_null(), high.or_null()).is_lt()
    {
        let what = "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the \
                    highest boundary.";
        return refuse(40199, what.into());
    }
    let switch = switch(group_by, &bounds, default.as_ref());
    let id = Expression::parse(switch.as_raw().into(), parser.scope)?;
    let group = Group::new(id, fields.map_or_else(|| default_output(parser.scope), Ok)?);
    let by_id = doc! { "_id": 1 };
    let sort =
        Sort::parse(by_id.as_raw(), parser.scope)?.ok_or_else(|| Error::internal("a sort by one field is a sort"))?;
    Ok(vec![Arc::new(group), Arc::new(SortStage::new(sort))])
}

/// A field path or an operator, which is what ranges can be made of.
pub(super) fn is_expression(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(path) => path.starts_with('$'),
        ValueRef::Document(doc) => doc.first().is_some_and(|first| first.name().starts_with('$')),
        _ => false,
    }
}

/// The accumulated fields of an `output`.
pub(super) fn parse_output(
    output: ValueRef<'_>,
    scope: &Scope,
    stage: &str,
    code: i32,
) -> Result<Vec<(Box<str>, AccumulatorSpec)>> {
    let ValueRef::Document(fields) = output else {
        let found = output.ty().name();
        let message = format!("The {stage} 'output' field must be an object, but found type: {found}.");
        return Err(Error::new(Code(code), message));
    };
    group::parse_fields(fields, scope)
}

/// Without an `output`, documents are counted.
pub(super) fn default_output(scope: &Scope) -> Result<Vec<(Box<str>, AccumulatorSpec)>> {
    let one = doc! { "$sum": 1 };
    Ok(vec![("count".into(), accumulator::parse("count", one.as_raw().into(), scope)?)])
}

fn constant(value: ValueRef<'_>, scope: &Scope) -> Result<Option<Value<'static>>> {
    let scope = scope.apart();
    let expression = Expression::parse(value, &scope)?;
    scope.settle()?;
    Ok(expression.as_constant().cloned())
}

fn parse_boundaries(value: ValueRef<'_>, scope: &Scope) -> Result<Vec<Value<'static>>> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let ValueRef::Array(array) = value else {
        let found = value.ty().name();
        return refuse(40200, format!("The $bucket 'boundaries' field must be an array, but found type: {found}."));
    };
    let mut bounds: Vec<Value<'static>> = Vec::new();
    for value in array.iter() {
        let Some(bound) = constant(value, scope)? else {
            let what = "The $bucket 'boundaries' field must be an array of constant values";
            return refuse(40191, format!("{what}, but found value: {value}."));
        };
        bounds.push(bound);
    }
    if bounds.len() < 2 {
        let what = "The $bucket 'boundaries' field must have at least 2 values";
        return refuse(40192, format!("{what}, but found {} value(s).", bounds.len()));
    }
    for (at, pair) in bounds.windows(2).enumerate() {
        let [low, high] = pair else { continue };
        let (low, high) = (low.or_null(), high.or_null());
        if low.ty().rank() != high.ty().rank() {
            let what = "All values in the the 'boundaries' option to $bucket must have the same type";
            let (one, other) = (low.ty().name(), high.ty().name());
            return refuse(40193, format!("{what}. Found conflicting types {one} and {other}."));
        }
        if scope.collator().compare(low, high).is_ge() {
            let message = format!(
                "The 'boundaries' option to $bucket must be sorted, but elements {at} and {} are not in ascending \
                 order ({low} is not less than {high}).",
                at + 1
            );
            return refuse(40194, message);
        }
    }
    Ok(bounds)
}

/// The lower bound of the range that a value lies in, as an expression.
fn switch(group_by: ValueRef<'_>, bounds: &[Value<'static>], default: Option<&Value<'static>>) -> DocBuf {
    let literal = |value: &Value<'_>| {
        let mut doc = DocBuf::new();
        doc.append("$literal", value.or_null());
        doc
    };
    let comparison = |operator: &str, bound: &Value<'_>| {
        let mut doc = DocBuf::new();
        doc.append_array(operator, |operands| {
            operands.push(group_by).push(&literal(bound));
        });
        doc
    };
    let mut arguments = DocBuf::new();
    arguments.append_array("branches", |branches| {
        for pair in bounds.windows(2) {
            let [low, high] = pair else { continue };
            branches.push_doc(|branch| {
                branch.append_doc("case", |case| {
                    case.append_array("$and", |both| {
                        both.push(&comparison("$gte", low)).push(&comparison("$lt", high));
                    });
                });
                branch.append("then", &literal(low));
            });
        }
    });
    if let Some(default) = default {
        arguments.append("default", &literal(default));
    }
    let mut switch = DocBuf::new();
    switch.append("$switch", RawDoc::trusted(arguments.as_bytes()));
    switch
}
