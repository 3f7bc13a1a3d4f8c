//! `$divide`: The quotient of two numbers: a double, or a decimal if one of them is.

use super::super::prelude::*;

pub(super) static DIVIDE: Operator = Operator {
    name: "$divide",
    args: Args::Exactly(2),
    eval: Eval::Lazy(divide),
    doc: "The quotient of two numbers: a double, or a decimal if one of them is.",
};

fn divide<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    // The right one first: if both fail, its error is told.
    let (right, left) = (args.at(1)?, args.at(0)?);
    if left.is_nullish() || right.is_nullish() {
        return Ok(Value::NULL);
    }
    let (Some(left), Some(right)) = (Number::of(left.or_null()), Number::of(right.or_null())) else {
        let (left, right) = (type_name(&left), type_name(&right));
        let message = format!("$divide only supports numeric types, not {left} and {right}");
        return Err(Error::type_mismatch(message));
    };
    if right.is_zero() {
        return Err(Error::bad_value("can't $divide by zero"));
    }
    Ok(match (left, right) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => left.to_decimal().div(right.to_decimal()).into(),
        _ => (left.to_f64() / right.to_f64()).into(),
    })
}
