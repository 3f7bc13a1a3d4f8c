//! `$max` sets a field to the argument if that comes after the present value in BSON's order, across types; a missing
//! field takes the argument. An equal value of another numeric type changes nothing.

use std::sync::Arc;

use espalier_value::{Collation, Collator, Result, Value};

use super::{Argument, Definition, Operator, Outcome, Slot};
use crate::update::nesting;

pub(super) static MAX: Definition =
    Definition { name: "$max", doc: "Sets a field to a value if that is larger than the present one.", parse };

#[derive(Debug)]
struct Max {
    value: Value<'static>,
    collation: Option<Arc<Collation>>,
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Max { value: Value::own(argument.value), collation: argument.scope.collation().clone() }))
}

impl Operator for Max {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        let new = self.value.or_null();
        match slot.value {
            Some(old) if !Collator::of(&self.collation).compare(new, old).is_gt() => Ok(Outcome::Keep),
            _ => Ok(Outcome::set(new)),
        }
    }

    fn depth(&self) -> usize {
        nesting::depth(self.value.or_null())
    }
}
