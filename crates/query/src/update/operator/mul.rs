//! `$mul` multiplies a number; a missing field becomes zero of the argument's type. Types and overflow as for `$inc`.

use espalier_value::number::Number;
use espalier_value::{Error, Result};

use super::inc::arithmetic;
use super::{Argument, Definition, Operator, Outcome, Slot};

pub(super) static MUL: Definition = Definition { name: "$mul", doc: "Multiplies a field by a number.", parse };

#[derive(Debug)]
struct Mul {
    by: Number,
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    match Number::of(argument.value) {
        Some(by) => Ok(Box::new(Mul { by })),
        None => {
            let message = format!("Cannot multiply with non-numeric argument: {{{}}}", argument.show());
            Err(Error::type_mismatch(message))
        }
    }
}

impl Operator for Mul {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        match slot.value {
            None => {
                let zero = self.by.checked_mul(Number::Int32(0)).unwrap_or(Number::Int32(0));
                Ok(Outcome::set(zero.to_value()))
            }
            Some(_) => arithmetic(slot, "$mul", |n| n.checked_mul(self.by)),
        }
    }
}
