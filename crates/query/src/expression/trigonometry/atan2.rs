//! `$atan2`: The angle in radians between the positive x axis and the point (x, y), given as y and x.

use astro_float_num::BigFloat;

use super::super::prelude::*;
use super::function::{NEAREST, PRECISION, from_decimal, to_decimal, with_consts};

pub(super) static ATAN2: Operator = Operator {
    name: "$atan2",
    args: Args::Exactly(2),
    eval: Eval::Lazy(atan2),
    doc: "The angle in radians between the positive x axis and the point (x, y), given as y and x.",
};

fn atan2<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let coordinate = |at, code| {
        let value = args.at(at)?;
        match Number::of(value.or_null()) {
            None if value.is_nullish() => Ok(None),
            None => refuse(code, format!("$atan2 only supports numeric types, not {}", type_name(&value))),
            number => Ok(number),
        }
    };
    let Some(y) = coordinate(0, 51044)? else { return Ok(Value::NULL) };
    let Some(x) = coordinate(1, 51045)? else { return Ok(Value::NULL) };
    Ok(match (y, x) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => decimal(y.to_decimal(), x.to_decimal())?.into(),
        _ => y.to_f64().atan2(x.to_f64()).into(),
    })
}

fn decimal(y: Decimal128, x: Decimal128) -> Result<Decimal128> {
    if y.is_nan() || x.is_nan() {
        return Ok(Decimal128::NAN);
    }
    if !y.is_finite() || !x.is_finite() || y.is_zero() || x.is_zero() {
        // On the axes and at infinity the double result is the right one; more digits come from pi below.
        return on_axis(y.to_f64().atan2(x.to_f64()));
    }
    with_consts(|consts| {
        let (top, bottom) = (from_decimal(y, consts), from_decimal(x, consts));
        let angle = top.div(&bottom, PRECISION, NEAREST).atan(PRECISION, NEAREST, consts);
        let angle = if x.is_sign_negative() {
            let pi = consts.pi(PRECISION, NEAREST);
            if y.is_sign_negative() { angle.sub(&pi, PRECISION, NEAREST) } else { angle.add(&pi, PRECISION, NEAREST) }
        } else {
            angle
        };
        Ok(to_decimal(&angle, consts))
    })
}

/// A multiple of pi/4, of which a double tells which one.
fn on_axis(angle: f64) -> Result<Decimal128> {
    let quarters = (angle / std::f64::consts::FRAC_PI_4).round();
    if quarters == 0.0 {
        return Ok(if angle.is_sign_negative() { Decimal128::ZERO.negated() } else { Decimal128::ZERO });
    }
    with_consts(|consts| {
        let pi = consts.pi(PRECISION, NEAREST);
        let quarter = pi.div(&BigFloat::from_f64(4.0, PRECISION), PRECISION, NEAREST);
        let angle = quarter.mul(&BigFloat::from_f64(quarters, PRECISION), PRECISION, NEAREST);
        Ok(to_decimal(&angle, consts))
    })
}
