//! `$log`: The logarithm of a number to a base.

use super::super::prelude::*;

pub(super) static LOG: Operator = Operator {
    name: "$log",
    args: Args::Exactly(2),
    eval: Eval::Strict(log),
    doc: "The logarithm of a number to a base.",
};

fn log<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    if args.iter().any(Value::is_nullish) {
        return Ok(Value::NULL);
    }
    let Some(x) = Number::of(args[0].or_null()) else {
        return refuse(28756, format!("$log's argument must be numeric, not {}", type_name(&args[0])));
    };
    let Some(base) = Number::of(args[1].or_null()) else {
        return refuse(28757, format!("$log's base must be numeric, not {}", type_name(&args[1])));
    };
    if x.is_nan() || base.is_nan() {
        return Ok(f64::NAN.into());
    }
    let positive = |n: Number| n.compare(Number::Int32(0)).is_gt();
    if !positive(x) {
        return refuse(28758, format!("$log's argument must be a positive number, but is {x:?}"));
    }
    if !positive(base) || base.compare(Number::Int32(1)).is_eq() {
        return refuse(28759, format!("$log's base must be a positive number not equal to 1, but is {base:?}"));
    }
    Ok(match (x, base) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => x.to_decimal().log(base.to_decimal()).into(),
        _ => (x.to_f64().ln() / base.to_f64().ln()).into(),
    })
}
