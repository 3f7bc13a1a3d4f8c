//! `$inc` adds to a number; a missing field starts from nothing and takes the argument as it is. The result has the
//! wider of the two types; an int that overflows becomes a long, a long that overflows is an error.

use espalier_value::number::Number;
use espalier_value::{Error, Result};

use super::{Argument, Definition, Operator, Outcome, Slot};

pub(super) static INC: Definition = Definition { name: "$inc", doc: "Adds a number to a field.", parse };

#[derive(Debug)]
struct Inc {
    by: Number,
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    match Number::of(argument.value) {
        Some(by) => Ok(Box::new(Inc { by })),
        None => {
            let message = format!("Cannot increment with non-numeric argument: {{{}}}", argument.show());
            Err(Error::type_mismatch(message))
        }
    }
}

impl Operator for Inc {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        match slot.value {
            None => Ok(Outcome::set(self.by.to_value())),
            Some(_) => arithmetic(slot, "$inc", |n| n.checked_add(self.by)),
        }
    }
}

/// What `$inc` and `$mul` share: the old value must be a number, the new one must fit, and a new one that equals the
/// old one in type and value (not in bits: -0.0 is 0.0, 1.00 is 1, NaN is not NaN) is no modification.
pub(super) fn arithmetic<'a>(
    slot: &Slot<'_, 'a>,
    name: &str,
    compute: impl FnOnce(Number) -> Option<Number>,
) -> Result<Outcome<'a>> {
    let Some(value) = slot.value else { return Ok(Outcome::Keep) };
    let Some(old) = Number::of(value) else {
        let (id, field, ty) = (slot.show_id(), slot.trail.name(), value.ty().name());
        let message = format!(
            "Cannot apply {name} to a value of non-numeric type. {{{id}}} has the field '{field}' of non-numeric type {ty}"
        );
        return Err(Error::type_mismatch(message));
    };
    let Some(new) = compute(old) else {
        let kind = if matches!(old, Number::Int32(_)) { "NumberInt" } else { "NumberLong" };
        let id = slot.show_id();
        let message =
            format!("Failed to apply {name} operations to current value (({kind}){value}) for document {{{id}}}");
        return Err(Error::bad_value(message));
    };
    let same_type = new.to_value().ty() == value.ty();
    if same_type && !new.is_nan() && new.compare(old).is_eq() {
        return Ok(Outcome::Keep);
    }
    Ok(Outcome::Replace(new.to_value().into()))
}
