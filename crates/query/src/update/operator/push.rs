//! `$push` appends to an array, creating it if it is missing. `$each` appends several, `$position` puts them elsewhere,
//! `$sort` then sorts the whole array, and `$slice` then cuts it: the first n, or with a negative n the last.

use std::cmp::Ordering;
use std::sync::Arc;

use espalier_value::number::Number;
use espalier_value::{ArrayBuf, Collation, Collator, Error, Path, RawDoc, Result, Value, ValueRef};

use super::{Argument, Definition, Operator, Outcome, Slot};
use crate::expression::Scope;
use crate::update::nesting;

pub(super) static PUSH: Definition = Definition {
    name: "$push",
    doc: "Appends to an array; $each, $position, $sort and $slice say what, where, in which order and how much of it.",
    parse,
};

#[derive(Debug)]
struct Push {
    /// An array.
    values: Value<'static>,
    count: usize,
    position: Option<i64>,
    slice: Option<i64>,
    sort: Option<Sort>,
    /// What the sort compares strings by.
    collation: Option<Arc<Collation>>,
}

#[derive(Debug)]
enum Sort {
    Whole {
        descending: bool,
    },
    /// Path and whether descending.
    By(Vec<(Path, bool)>),
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    let plain = |value| {
        let values = Value::array(ArrayBuf::from_iter([value]));
        Push { values, count: 1, position: None, slice: None, sort: None, collation: None }
    };
    let push = match argument.value {
        ValueRef::Document(clauses) if clauses.elem("$each").is_some() => parse_clauses(clauses, argument.scope)?,
        value => plain(value),
    };
    Ok(Box::new(push))
}

fn parse_clauses(clauses: RawDoc<'_>, scope: &Scope) -> Result<Push> {
    let collation = scope.collation().clone();
    let mut push = Push { values: Value::Missing, count: 0, position: None, slice: None, sort: None, collation };
    for clause in clauses {
        let value = clause.value();
        let ty = value.ty().name();
        match clause.name() {
            "$each" => match value {
                ValueRef::Array(array) => {
                    push.count = array.len();
                    push.values = Value::own(value);
                }
                _ => {
                    let message = format!("The argument to $each in $push must be an array but it was of type: {ty}");
                    return Err(Error::bad_value(message));
                }
            },
            "$position" => {
                push.position = Some(integer(value).ok_or_else(|| {
                    Error::bad_value(format!("The value for $position must be an integer value, not of type: {ty}"))
                })?);
            }
            "$slice" => {
                push.slice = Some(integer(value).ok_or_else(|| {
                    Error::bad_value(format!("The value for $slice must be an integer value but was given type: {ty}"))
                })?);
            }
            "$sort" => push.sort = Some(parse_sort(value)?),
            name => return Err(Error::bad_value(format!("Unrecognized clause in $push: {name}"))),
        }
    }
    Ok(push)
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    Number::of(value)?.as_exact_i64()
}

fn parse_sort(value: ValueRef<'_>) -> Result<Sort> {
    let ValueRef::Document(pattern) = value else {
        if !value.is_number() {
            return Err(Error::bad_value(
                "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
            ));
        }
        let descending =
            direction(value).ok_or_else(|| Error::bad_value("The $sort element value must be either 1 or -1"))?;
        return Ok(Sort::Whole { descending });
    };
    if pattern.is_empty() {
        return Err(Error::bad_value("The sort pattern is empty when it should be a set of fields."));
    }
    let mut by = Vec::new();
    for elem in pattern {
        let name = elem.name();
        let descending =
            direction(elem.value()).ok_or_else(|| Error::bad_value("The sort element value must be either 1 or -1"))?;
        if name.is_empty() {
            return Err(Error::bad_value("The sort field cannot be empty"));
        }
        if name.split('.').any(str::is_empty) {
            let message = format!("The sort field is a dotted field but has an empty part: {name}");
            return Err(Error::bad_value(message));
        }
        by.push((Path::new(name), descending));
    }
    Ok(Sort::By(by))
}

/// Whether descending; `None` if neither 1 nor -1.
fn direction(value: ValueRef<'_>) -> Option<bool> {
    match integer(value)? {
        1 => Some(false),
        -1 => Some(true),
        _ => None,
    }
}

impl Push {
    fn values(&self) -> impl Iterator<Item = ValueRef<'_>> + Clone {
        self.values.as_ref().and_then(ValueRef::as_array).into_iter().flat_map(|a| a.iter())
    }

    /// Nothing moves and nothing is cut: the old elements are copied as they stand and the new ones follow.
    fn is_append(&self, len: usize) -> bool {
        self.sort.is_none()
            && self.slice.is_none_or(|n| n.unsigned_abs() >= (len + self.count) as u64)
            && (self.count == 0 || self.position.is_none_or(|p| p >= 0 && p as u64 >= len as u64))
    }

    fn rearrange<'v>(&'v self, old: impl Iterator<Item = ValueRef<'v>>) -> ArrayBuf {
        let mut all: Vec<ValueRef<'v>> = old.collect();
        let len = all.len();
        let at = match self.position {
            None => len,
            Some(p) if p >= 0 => usize::try_from(p).map_or(len, |p| p.min(len)),
            // From the end; before the first element is at the first.
            Some(p) => usize::try_from(p.unsigned_abs()).map_or(0, |back| len.saturating_sub(back)),
        };
        all.splice(at..at, self.values());
        if let Some(sort) = &self.sort {
            let collator = Collator::of(&self.collation);
            all.sort_by(|a, b| sort.compare(*a, *b, collator));
        }
        let keep = self.slice.map_or(all.len(), |n| usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX));
        if keep < all.len() {
            match self.slice {
                Some(n) if n < 0 => drop(all.drain(..all.len() - keep)),
                _ => all.truncate(keep),
            }
        }
        all.into_iter().collect()
    }
}

impl Sort {
    fn compare(&self, a: ValueRef<'_>, b: ValueRef<'_>, collator: Collator<'_>) -> Ordering {
        let directed = |order: Ordering, descending: bool| if descending { order.reverse() } else { order };
        match self {
            Sort::Whole { descending } => directed(collator.compare(a, b), *descending),
            Sort::By(fields) => fields
                .iter()
                .map(|(path, descending)| directed(collator.compare(sort_key(a, path), sort_key(b, path)), *descending))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal),
        }
    }
}

/// The value a sort looks at: by name only, never through the elements of an array; null if there is none.
fn sort_key<'v>(element: ValueRef<'v>, path: &Path) -> ValueRef<'v> {
    let ValueRef::Document(doc) = element else { return ValueRef::Null };
    let mut inner = Some(ValueRef::Document(doc));
    for part in path.parts() {
        inner = match inner {
            Some(ValueRef::Document(doc)) => doc.get(part.name()),
            Some(ValueRef::Array(array)) => array.as_doc().get(part.name()),
            _ => None,
        };
    }
    inner.unwrap_or(ValueRef::Null)
}

impl Operator for Push {
    fn appends(&self) -> bool {
        self.position.is_none() && self.slice.is_none() && self.sort.is_none()
    }

    fn appends_to(&self, old: ValueRef<'_>) -> Option<usize> {
        let len = old.as_array()?.len();
        // A position at the very end counts as one within the array.
        let is_behind = self.position.is_none_or(|p| p > 0 && p as u64 > len as u64);
        (len > 0 && is_behind && self.is_append(len)).then_some(len)
    }

    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        let old = match slot.value {
            None => return Ok(Outcome::Replace(Value::array(self.rearrange(std::iter::empty())))),
            Some(ValueRef::Array(array)) => array,
            Some(other) => {
                let (field, ty, id) = (slot.trail.dotted(), other.ty().name(), slot.show_id());
                let message = format!("The field '{field}' must be an array but is of type {ty} in document {{{id}}}");
                return Err(Error::bad_value(message));
            }
        };
        if self.count > 0 && self.appends() {
            return Ok(Outcome::Replace(Value::array(super::appended(old, self.values()))));
        }
        let len = old.len();
        if len + self.count == 0 {
            return Ok(Outcome::Keep);
        }
        if !self.is_append(len) {
            return Ok(Outcome::Replace(Value::array(self.rearrange(old.iter()))));
        }
        if self.count == 0 {
            return Ok(Outcome::Keep);
        }
        Ok(Outcome::Replace(Value::array(super::appended(old, self.values()))))
    }

    fn depth(&self) -> usize {
        nesting::depth(self.values.or_null()).max(1)
    }
}
