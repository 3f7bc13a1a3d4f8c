//! `$pow`: A number raised to a power.

use super::super::prelude::*;

pub(super) static POW: Operator =
    Operator { name: "$pow", args: Args::Exactly(2), eval: Eval::Strict(pow), doc: "A number raised to a power." };

fn pow<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    if args.iter().any(Value::is_nullish) {
        return Ok(Value::NULL);
    }
    let Some(base) = Number::of(args[0].or_null()) else {
        return refuse(28762, format!("$pow's base must be numeric, not {}", type_name(&args[0])));
    };
    let Some(exponent) = Number::of(args[1].or_null()) else {
        return refuse(28763, format!("$pow's exponent must be numeric, not {}", type_name(&args[1])));
    };
    if base.is_zero() && exponent.compare(Number::Int32(0)).is_lt() && !exponent.is_nan() {
        return refuse(28764, "$pow cannot take a base of 0 and a negative exponent");
    }
    Ok(match (base, exponent) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => base.to_decimal().pow(exponent.to_decimal()).into(),
        (Number::Double(_), _) | (_, Number::Double(_)) => base.to_f64().powf(exponent.to_f64()).into(),
        _ => match whole(base.to_i64_clamped(), exponent.to_i64_clamped()) {
            None => base.to_f64().powf(exponent.to_f64()).into(),
            Some(x) if matches!((base, exponent), (Number::Int32(_), Number::Int32(_))) => {
                Number::narrowest(x).to_value().into()
            }
            Some(x) => x.into(),
        },
    })
}

/// The exact power, if it is whole and a long holds it.
fn whole(base: i64, exponent: i64) -> Option<i64> {
    match (base, exponent) {
        (1, _) => Some(1),
        (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (0, 0) => Some(1),
        (0, _) => Some(0),
        _ => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}
