//! `$mod`: The remainder of a division, with the sign of the dividend.

use super::super::prelude::*;

pub(super) static MOD: Operator = Operator {
    name: "$mod",
    args: Args::Exactly(2),
    eval: Eval::Strict(modulo),
    doc: "The remainder of a division, with the sign of the dividend.",
};

fn modulo<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    if args.iter().any(Value::is_nullish) {
        return Ok(Value::NULL);
    }
    let (Some(left), Some(right)) = (Number::of(args[0].or_null()), Number::of(args[1].or_null())) else {
        let (left, right) = (type_name(&args[0]), type_name(&args[1]));
        return refuse(16611, format!("$mod only supports numeric types, not {left} and {right}"));
    };
    let is_decimal = matches!((left, right), (Number::Decimal(_), _) | (_, Number::Decimal(_)));
    if right.is_zero() {
        return refuse(if is_decimal { 5733415 } else { 16610 }, "can't $mod by zero");
    }
    if is_decimal {
        return Ok(left.to_decimal().rem(right.to_decimal()).into());
    }
    let divisor = match right {
        // A whole double that an int could hold divides integers as an integer would.
        Number::Double(x) if x == f64::from(x as i32) => Number::Int32(x as i32),
        other => other,
    };
    Ok(match (left, divisor) {
        (Number::Int32(x), Number::Int32(y)) => x.wrapping_rem(y).into(),
        (Number::Double(x), _) => (x % right.to_f64()).into(),
        (_, Number::Double(y)) => (left.to_f64() % y).into(),
        _ => left.to_i64_clamped().wrapping_rem(divisor.to_i64_clamped()).into(),
    })
}
