//! `$pullAll` removes every element of an array that equals one of the given values: numbers by value whatever their
//! type, documents with their fields in order.

use std::sync::Arc;

use espalier_value::{Collation, Collator, Error, Result, Value, ValueRef};

use super::{Argument, Definition, Operator, Outcome, Slot, retain};

pub(super) static PULL_ALL: Definition =
    Definition { name: "$pullAll", doc: "Removes the elements of an array that equal one of several values.", parse };

#[derive(Debug)]
struct PullAll {
    /// Sorted.
    values: Vec<Value<'static>>,
    collation: Option<Arc<Collation>>,
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    let ValueRef::Array(array) = argument.value else {
        let ty = argument.value.ty().name();
        return Err(Error::bad_value(format!("$pullAll requires an array argument but was given a {ty}")));
    };
    let mut values: Vec<Value<'static>> = array.iter().map(Value::own).collect();
    let collation = argument.scope.collation().clone();
    values.sort_by(|a, b| Collator::of(&collation).compare(a.or_null(), b.or_null()));
    Ok(Box::new(PullAll { values, collation }))
}

impl Operator for PullAll {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        let collator = Collator::of(&self.collation);
        retain(slot, |element| Ok(self.values.binary_search_by(|v| collator.compare(v.or_null(), element)).is_err()))
    }

    fn creates(&self) -> bool {
        false
    }
}
