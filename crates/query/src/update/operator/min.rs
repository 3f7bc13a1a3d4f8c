//! `$min` sets a field to the argument if that comes before the present value in BSON's order, across types; a missing
//! field takes the argument. An equal value of another numeric type changes nothing.

use std::sync::Arc;

use espalier_value::{Collation, Collator, Result, Value};

use super::{Argument, Definition, Operator, Outcome, Slot};
use crate::update::nesting;

pub(super) static MIN: Definition =
    Definition { name: "$min", doc: "Sets a field to a value if that is smaller than the present one.", parse };

#[derive(Debug)]
struct Min {
    value: Value<'static>,
    collation: Option<Arc<Collation>>,
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Min { value: Value::own(argument.value), collation: argument.scope.collation().clone() }))
}

impl Operator for Min {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        let new = self.value.or_null();
        match slot.value {
            Some(old) if !Collator::of(&self.collation).compare(new, old).is_lt() => Ok(Outcome::Keep),
            _ => Ok(Outcome::set(new)),
        }
    }

    fn depth(&self) -> usize {
        nesting::depth(self.value.or_null())
    }
}
