//! `$set` gives a field a value, creating the path to it. Setting the very same bytes is no modification; another
//! numeric type, another sign of zero or another field order is one.

use espalier_value::{Result, Value};

use super::{Argument, Definition, Operator, Outcome, Slot};
use crate::update::nesting;

pub(super) static SET: Definition =
    Definition { name: "$set", doc: "Sets a field to a value, creating it if it is missing.", parse };

#[derive(Debug)]
struct Set {
    value: Value<'static>,
}

pub(super) fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Set { value: Value::own(argument.value) }))
}

impl Operator for Set {
    fn apply<'a>(&'a self, _slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        Ok(Outcome::set(self.value.or_null()))
    }

    fn depth(&self) -> usize {
        nesting::depth(self.value.or_null())
    }
}
