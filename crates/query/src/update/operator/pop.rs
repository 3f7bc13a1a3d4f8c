//! `$pop` removes the last element of an array (1) or the first (-1). An empty array or a missing field stays as it is.

use espalier_value::number::Number;
use espalier_value::{ArrayBuf, Error, Result, Value, ValueRef};

use super::{Argument, Definition, Operator, Outcome, Slot};

pub(super) static POP: Definition =
    Definition { name: "$pop", doc: "Removes the first or the last element of an array.", parse };

#[derive(Debug)]
enum Pop {
    First,
    Last,
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    let Some(number) = Number::of(argument.value) else {
        return Err(Error::failed_to_parse(format!("Expected a number in: {}", argument.show())));
    };
    match number.as_exact_i64() {
        Some(1) => Ok(Box::new(Pop::Last)),
        Some(-1) => Ok(Box::new(Pop::First)),
        Some(_) => Err(Error::failed_to_parse(format!("$pop expects 1 or -1, found: {}", argument.value))),
        None => Err(Error::failed_to_parse(format!("Expected an integer: {}", argument.show()))),
    }
}

impl Operator for Pop {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        let array = match slot.value {
            Some(ValueRef::Array(array)) => array,
            Some(other) => {
                let (path, ty) = (slot.trail.dotted(), other.ty().name());
                let message = format!("Path '{path}' contains an element of non-array type '{ty}'");
                return Err(Error::type_mismatch(message));
            }
            None => return Ok(Outcome::Keep),
        };
        let len = array.len();
        if len == 0 {
            return Ok(Outcome::Keep);
        }
        let rest: ArrayBuf = match self {
            Pop::First => array.iter().skip(1).collect(),
            Pop::Last => array.iter().take(len - 1).collect(),
        };
        Ok(Outcome::Replace(Value::array(rest)))
    }

    fn creates(&self) -> bool {
        false
    }
}
