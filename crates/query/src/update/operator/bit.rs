//! `$bit` combines an integer with others bit by bit: `{and: 6, or: 1, xor: 4}`, one after the other. The result is a
//! long if any operand is one. A missing field starts as 0.

use espalier_value::{Error, Result, ValueRef};

use super::{Argument, Definition, Operator, Outcome, Slot};

pub(super) static BIT: Definition =
    Definition { name: "$bit", doc: "Combines an integer with others by and, or and xor.", parse };

#[derive(Debug)]
struct Bit {
    steps: Vec<(Logic, Integer)>,
}

#[derive(Clone, Copy, Debug)]
enum Logic {
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Integer {
    Int(i32),
    Long(i64),
}

impl Integer {
    fn of(value: ValueRef<'_>) -> Option<Integer> {
        match value {
            ValueRef::Int32(x) => Some(Integer::Int(x)),
            ValueRef::Int64(x) => Some(Integer::Long(x)),
            _ => None,
        }
    }

    fn to_value(self) -> ValueRef<'static> {
        match self {
            Integer::Int(x) => ValueRef::Int32(x),
            Integer::Long(x) => ValueRef::Int64(x),
        }
    }

    fn widened(self) -> i64 {
        match self {
            Integer::Int(x) => x.into(),
            Integer::Long(x) => x,
        }
    }

    fn combine(self, logic: Logic, other: Integer) -> Integer {
        match (self, other) {
            (Integer::Int(x), Integer::Int(y)) => Integer::Int(match logic {
                Logic::And => x & y,
                Logic::Or => x | y,
                Logic::Xor => x ^ y,
            }),
            _ => {
                let (x, y) = (self.widened(), other.widened());
                Integer::Long(match logic {
                    Logic::And => x & y,
                    Logic::Or => x | y,
                    Logic::Xor => x ^ y,
                })
            }
        }
    }
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    let ValueRef::Document(operations) = argument.value else {
        let ty = argument.value.ty().name();
        return Err(Error::bad_value(format!(
            "The $bit modifier is not compatible with a {ty}. You must pass in an embedded document: {{$bit: {{field: \
             {{and/or/xor: #}}}}"
        )));
    };
    let mut steps = Vec::new();
    for elem in operations {
        let shown = format!("{}: {}", elem.name(), elem.value());
        let logic = match elem.name() {
            "and" => Logic::And,
            "or" => Logic::Or,
            "xor" => Logic::Xor,
            name => {
                return Err(Error::bad_value(format!(
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an unknown \
                     operator: {{{shown}}}"
                )));
            }
        };
        let Some(operand) = Integer::of(elem.value()) else {
            let ty = elem.value().ty().name();
            return Err(Error::bad_value(format!(
                "The $bit modifier field must be an Integer(32/64 bit); a '{ty}' is not supported here: {{{shown}}}"
            )));
        };
        steps.push((logic, operand));
    }
    if steps.is_empty() {
        return Err(Error::bad_value(
            "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}",
        ));
    }
    Ok(Box::new(Bit { steps }))
}

impl Operator for Bit {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        let start = match slot.value {
            None => Integer::Int(0),
            Some(value) => Integer::of(value).ok_or_else(|| {
                let (id, field, ty) = (slot.show_id(), slot.trail.name(), value.ty().name());
                Error::bad_value(format!(
                    "Cannot apply $bit to a value of non-integral type.{id} has the field {field} of non-integer type \
                     {ty}"
                ))
            })?,
        };
        let result = self.steps.iter().fold(start, |acc, (logic, operand)| acc.combine(*logic, *operand));
        Ok(Outcome::set(result.to_value()))
    }
}
