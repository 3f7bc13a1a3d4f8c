//! `$in`: equal to one of a list of values, or matched by one of its regular expressions.

use std::sync::Arc;

use espalier_value::collation::{self, Collation, Collator};
use espalier_value::{ArrayBuf, DocBuf, Error, RawArray, Result, Value, ValueRef};

use super::comparison::defined;
use super::eq::Eq;
use super::regex::Regex;
use super::{Operator, Place};
use crate::context::Context;
use crate::expression::Scope;
use crate::filter::parse::{Field, is_operators};
use crate::filter::{Bounds, Node, Predicate};

pub(super) const IN: Operator = Operator {
    name: "$in",
    place: Place::Field(parse),
    doc: "Values equal to one of a list, or matched by one of its regular expressions.",
};

fn parse(field: &Field<'_>) -> Result<Node> {
    member("$in", field)
}

/// The node for "is one of"; serves `$nin` too.
pub(super) fn member(name: &str, field: &Field<'_>) -> Result<Node> {
    let ValueRef::Array(array) = field.argument else {
        return Err(Error::bad_value(format!("{name} needs an array")));
    };
    let mut list = In::new(array, field.parser.scope)?;
    // One alternative is no alternative: an index can be asked for the one value, and an upsert can take it over.
    Ok(match (list.values.len(), list.regexes.len()) {
        (1, 0) => match list.values.pop() {
            Some(only) => field.leaf(Eq::of(only, field.parser.scope)),
            None => field.leaf(list),
        },
        (0, 1) => match list.regexes.pop() {
            Some(only) => field.leaf(only),
            None => field.leaf(list),
        },
        _ => field.leaf(list),
    })
}

#[derive(Debug)]
pub(crate) struct In {
    /// Sorted, without duplicates.
    values: Vec<Value<'static>>,
    has_null: bool,
    regexes: Vec<Regex>,
    collation: Option<Arc<Collation>>,
}

impl In {
    fn new(array: RawArray<'_>, scope: &Scope) -> Result<In> {
        let (mut values, mut regexes) = (Vec::new(), Vec::new());
        for value in array.iter() {
            match value {
                ValueRef::Document(doc) if is_operators(doc, false) => {
                    return Err(Error::bad_value("cannot nest $ under $in"));
                }
                ValueRef::Regex(pattern, options) => regexes.push(Regex::new(pattern, options)?),
                _ => values.push(defined(value)?),
            }
        }
        Ok(In { regexes, ..In::of_values(values, scope) })
    }

    pub fn of_values(mut values: Vec<Value<'static>>, scope: &Scope) -> In {
        let collator = scope.collator();
        values.sort_by(|a, b| collator.compare(a.or_null(), b.or_null()));
        values.dedup_by(|a, b| collator.equal(a.or_null(), b.or_null()));
        let has_null = values.iter().any(|v| matches!(v.or_null(), ValueRef::Null));
        In { values, has_null, regexes: Vec::new(), collation: scope.collation().clone() }
    }
}

impl Predicate for In {
    fn name(&self) -> &'static str {
        "$in"
    }

    fn matches(&self, value: Option<ValueRef<'_>>, context: &Context) -> Result<bool> {
        let value = match value {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(self.has_null),
            Some(value) => value,
        };
        let collator = Collator::of(&self.collation);
        if self.values.binary_search_by(|wanted| collator.compare(wanted.or_null(), value)).is_ok() {
            return Ok(true);
        }
        for regex in &self.regexes {
            if regex.matches(Some(value), context)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn bounds(&self, index: Collator<'_>) -> Option<Bounds> {
        let each = self.values.iter().map(|v| Bounds::of_equality(index.translate(v.or_null()).or_null()));
        let all: Vec<Bounds> = each.chain(self.regexes.iter().filter_map(|regex| regex.bounds(index))).collect();
        let exact = all.iter().all(|b| b.exact);
        let intervals = all.into_iter().flat_map(|b| b.intervals).collect();
        Some(if exact { Bounds::exact(intervals) } else { Bounds::inexact(intervals) })
    }

    fn negated_bounds(&self, multikey: bool, index: Collator<'_>) -> Option<Bounds> {
        let values: Vec<Value<'_>> = self.values.iter().map(|v| index.translate(v.or_null())).collect();
        let mut bounds = Bounds::of_none(values.iter().map(Value::or_null), multikey);
        for regex in &self.regexes {
            if let Some(without) = regex.negated_bounds(multikey, index) {
                bounds = bounds.intersect(&without);
            }
        }
        Some(bounds)
    }

    fn exact_bounds(&self, index: Collator<'_>) -> Option<Bounds> {
        let values = self.values.iter().map(|v| Bounds::of_single(index.translate(v.or_null()).or_null()));
        let regexes = self.regexes.iter().map(|regex| regex.exact_bounds(index));
        values.chain(regexes).try_fold(Bounds::nothing(), |all, one| Some(all.union(&one?)))
    }

    fn is_collated(&self) -> bool {
        self.values.iter().any(|v| collation::is_collated(v.or_null()))
    }

    fn describe(&self, out: &mut DocBuf) {
        let mut list: ArrayBuf = self.values.iter().map(Value::or_null).collect();
        for regex in &self.regexes {
            list.push(regex.as_value());
        }
        out.append("$in", &list);
    }
}
