//! `$mod`: the number, cut to a whole one, leaves a given remainder when divided. The remainder has the sign of the
//! number, as in C.

use espalier_value::number::Number;
use espalier_value::{ArrayBuf, Collator, DocBuf, Error, Result, Type, ValueRef};

use super::{Operator, Place};
use crate::context::Context;
use crate::filter::parse::Field;
use crate::filter::{Bounds, Node, Predicate};

pub(super) const MOD: Operator = Operator {
    name: "$mod",
    place: Place::Field(parse),
    doc: "Numbers that leave the given remainder when divided by the given divisor.",
};

fn parse(field: &Field<'_>) -> Result<Node> {
    let ValueRef::Array(array) = field.argument else {
        return Err(Error::bad_value("malformed mod, needs to be an array"));
    };
    let mut parts = array.iter();
    let (Some(divisor), Some(remainder)) = (parts.next(), parts.next()) else {
        return Err(Error::bad_value("malformed mod, not enough elements"));
    };
    if parts.next().is_some() {
        return Err(Error::bad_value("malformed mod, too many elements"));
    }
    let divisor = argument("divisor", divisor)?;
    let remainder = argument("remainder", remainder)?;
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    Ok(field.leaf(Mod { divisor, remainder }))
}

fn argument(what: &str, value: ValueRef<'_>) -> Result<i64> {
    let number = Number::of(value).ok_or_else(|| Error::bad_value(format!("malformed mod, {what} not a number")))?;
    cut(number).map_err(|why| Error::bad_value(format!("malformed mod, {what} value is invalid :: caused by :: {why}")))
}

/// Cuts the fraction off.
fn cut(number: Number) -> Result<i64, &'static str> {
    match number {
        Number::Int32(x) => Ok(x.into()),
        Number::Int64(x) => Ok(x),
        _ => {
            let approximate = number.to_f64();
            if !approximate.is_finite() {
                return Err("Unable to coerce NaN/Inf to integral type");
            }
            // Clamping would hide numbers beyond a long.
            let (low, high) = (Number::Int64(i64::MIN), Number::Double(9_223_372_036_854_775_808.0));
            if number.compare(high).is_ge() || number.compare(low).is_lt() {
                return Err("Out of bounds coercing to integral value");
            }
            Ok(number.to_i64_clamped())
        }
    }
}

#[derive(Debug)]
struct Mod {
    divisor: i64,
    remainder: i64,
}

impl Predicate for Mod {
    fn name(&self) -> &'static str {
        "$mod"
    }

    fn matches(&self, value: Option<ValueRef<'_>>, _: &Context) -> Result<bool> {
        let Some(number) = value.and_then(Number::of) else { return Ok(false) };
        // The least long divided by -1 overflows, yet leaves no remainder.
        Ok(cut(number).is_ok_and(|n| n.checked_rem(self.divisor).unwrap_or(0) == self.remainder))
    }

    fn bounds(&self, _: Collator<'_>) -> Option<Bounds> {
        Some(Bounds { exact: false, ..Bounds::of_rank(Type::Double.rank()) })
    }

    fn describe(&self, out: &mut DocBuf) {
        let mut both = ArrayBuf::new();
        both.push(self.divisor).push(self.remainder);
        out.append("$mod", &both);
    }
}
