//! `$pull` removes the elements of an array that meet a condition: equal a value, satisfy operators (`{$gt: 5}`), match
//! a regular expression, or, as documents, match a filter (`{score: 8, item: "B"}`).

use espalier_value::Result;

use super::{Argument, Definition, Operator, Outcome, Slot, retain};
use crate::filter::ValuePredicate;

pub(super) static PULL: Definition =
    Definition { name: "$pull", doc: "Removes the elements of an array that meet a condition.", parse };

#[derive(Debug)]
struct Pull {
    condition: ValuePredicate,
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Pull { condition: ValuePredicate::parse(argument.value, argument.scope)? }))
}

impl Operator for Pull {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        retain(slot, |element| Ok(!self.condition.matches(element, slot.context)?))
    }

    fn creates(&self) -> bool {
        false
    }
}
