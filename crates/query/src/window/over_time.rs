//! What `$derivative` and `$integral` share: `{input, unit}` over a sort by one field.

use espalier_value::number::Number;
use espalier_value::{Code, Error, Result, ValueRef};

use super::Given;
use super::bounds::time_unit;
use crate::expression::Expression;

/// The input, and how many milliseconds the unit has if one is given.
pub(super) fn parse(given: &Given<'_>) -> Result<(Expression, Option<Number>)> {
    let name = given.name;
    let refuse = |message: String| Err(Error::failed_to_parse(message));
    match given.sort.map_or(0, |sort| sort.fields().len()) {
        0 => return refuse(format!("{name} requires a sortBy")),
        1 => {}
        _ => return refuse(format!("{name} requires a non-compound sortBy")),
    }
    let ValueRef::Document(spec) = given.argument else {
        let found = given.argument.ty().name();
        return refuse(format!("{name} expects an object, but got a {found}: {name}: {}", given.argument));
    };
    let (mut input, mut unit) = (None, None);
    for elem in spec {
        match (elem.name(), elem.value()) {
            ("input", value) => input = Some(given.expression(value)?),
            ("unit", ValueRef::String(name)) => match time_unit(name)?.fixed_ms() {
                Some(ms) => unit = Some(Number::Int64(ms)),
                None => return Err(Error::new(Code(5490710), "unit must be 'week' or smaller")),
            },
            ("unit", other) => return refuse(format!("'unit' must be a string, but got {}", other.ty().name())),
            (other, _) => return refuse(format!("{name} got unexpected argument: {other}")),
        }
    }
    match input {
        Some(input) => Ok((input, unit)),
        None => refuse(format!("{name} requires an 'input' expression")),
    }
}
