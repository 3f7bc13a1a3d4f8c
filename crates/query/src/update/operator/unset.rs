//! `$unset` removes a field. An element of an array becomes null, so that the others keep their places. A path that
//! leads to nothing, or could not lead to anything, is left alone. The argument's value has no meaning.

use espalier_value::Result;

use super::{Argument, Blocked, Definition, Operator, Outcome, Slot};

pub(super) static UNSET: Definition =
    Definition { name: "$unset", doc: "Removes a field; an element of an array becomes null.", parse };

#[derive(Debug)]
pub(super) struct Unset;

fn parse(_argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Unset))
}

impl Operator for Unset {
    fn apply<'a>(&'a self, _slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        Ok(Outcome::Remove)
    }

    fn creates(&self) -> bool {
        false
    }

    fn blocked(&self, _slot: &Slot<'_, '_>) -> Result<Blocked> {
        Ok(Blocked::Ignore)
    }
}
