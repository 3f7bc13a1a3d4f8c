//! `$addToSet` appends a value to an array unless an equal one is there: numbers by value whatever their type,
//! documents with their fields in order. `$each` adds several. Duplicates that are there already stay.

use std::collections::HashSet;
use std::sync::Arc;

use espalier_value::{Collation, Collator, Error, RawArray, RawDoc, Result, Value, ValueRef};

use super::{Argument, Definition, Operator, Outcome, Slot, appended};
use crate::update::nesting;

pub(super) static ADD_TO_SET: Definition =
    Definition { name: "$addToSet", doc: "Appends values to an array unless it has them already.", parse };

#[derive(Debug)]
struct AddToSet {
    /// No two of them equal.
    values: Vec<Value<'static>>,
    collation: Option<Arc<Collation>>,
}

/// Up to this many comparisons are made one by one; beyond, the old elements' keys go into a set first.
const COMPARISONS_MAX: usize = 256;

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    let mut add = AddToSet { values: Vec::new(), collation: argument.scope.collation().clone() };
    match argument.value {
        ValueRef::Document(doc) if doc.first().is_some_and(|e| e.name_bytes() == b"$each") => {
            let mut seen = HashSet::new();
            let each = parse_each(doc)?;
            add.values.extend(each.iter().filter(|v| seen.insert(argument.scope.collator().key(*v))).map(Value::own));
        }
        value => add.values.push(Value::own(value)),
    }
    Ok(Box::new(add))
}

fn parse_each(doc: RawDoc<'_>) -> Result<RawArray<'_>> {
    let each = match doc.first().map(|e| e.value()) {
        Some(ValueRef::Array(array)) => array,
        other => {
            let ty = other.map_or("missing", |v| v.ty().name());
            let message = format!("The argument to $each in $addToSet must be an array but it was of type {ty}");
            return Err(Error::type_mismatch(message));
        }
    };
    if doc.count() > 1 {
        return Err(Error::bad_value(format!("Found unexpected fields after $each in $addToSet: {doc}")));
    }
    Ok(each)
}

impl AddToSet {
    /// Those that the array does not have.
    fn absent<'v>(&'v self, old: RawArray<'_>) -> Vec<ValueRef<'v>> {
        let collator = Collator::of(&self.collation);
        let values = self.values.iter().map(|v| v.or_null());
        if self.values.len() == 1 || old.len() * self.values.len() <= COMPARISONS_MAX {
            return values.filter(|v| !old.iter().any(|o| collator.equal(o, *v))).collect();
        }
        let present: HashSet<Vec<u8>> = old.iter().map(|v| collator.key(v)).collect();
        values.filter(|v| !present.contains(&collator.key(*v))).collect()
    }
}

impl Operator for AddToSet {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        let old = match slot.value {
            None => return Ok(Outcome::Replace(Value::array(self.values.iter().map(|v| v.or_null()).collect()))),
            Some(ValueRef::Array(array)) => array,
            Some(other) => {
                let (field, ty) = (slot.trail.name(), other.ty().name());
                return Err(Error::bad_value(format!(
                    "Cannot apply $addToSet to non-array field. Field named '{field}' has non-array type {ty}"
                )));
            }
        };
        let absent = self.absent(old);
        if absent.is_empty() {
            return Ok(Outcome::Keep);
        }
        Ok(Outcome::Replace(Value::array(appended(old, absent.into_iter()))))
    }

    fn depth(&self) -> usize {
        1 + self.values.iter().map(|v| nesting::depth(v.or_null())).max().unwrap_or(0)
    }
}
