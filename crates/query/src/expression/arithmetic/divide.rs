//! `$divide`: The quotient of two numbers: a double, or a decimal if one of them is.

use super::super::prelude::*;

pub(super) static DIVIDE: Operator = Operator {
    name: "$divide",
    args: Args::Exactly(2),
    eval: Eval::Strict(divide),
    doc: "The quotient of two numbers: a double, or a decimal if one of them is.",
};

fn divide<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    if args.iter().any(Value::is_nullish) {
        return Ok(Value::NULL);
    }
    let (Some(left), Some(right)) = (Number::of(args[0].or_null()), Number::of(args[1].or_null())) else {
        let (left, right) = (type_name(&args[0]), type_name(&args[1]));
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
