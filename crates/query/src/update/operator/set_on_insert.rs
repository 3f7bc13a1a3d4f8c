//! `$setOnInsert` is `$set` for the document an upsert inserts, and nothing otherwise.

use espalier_value::{Result, Value};

use super::{Argument, Blocked, Definition, Operator, Outcome, Slot};
use crate::update::nesting;

pub(super) static SET_ON_INSERT: Definition =
    Definition { name: "$setOnInsert", doc: "Sets a field if the update inserts a new document.", parse };

#[derive(Debug)]
struct SetOnInsert {
    value: Value<'static>,
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(SetOnInsert { value: Value::own(argument.value) }))
}

impl Operator for SetOnInsert {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        Ok(if slot.inserting { Outcome::set(self.value.or_null()) } else { Outcome::Keep })
    }

    fn blocked(&self, slot: &Slot<'_, '_>) -> Result<Blocked> {
        Ok(if slot.inserting { Blocked::CannotCreate } else { Blocked::Ignore })
    }

    fn depth(&self) -> usize {
        nesting::depth(self.value.or_null())
    }
}
