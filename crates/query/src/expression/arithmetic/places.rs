//! Rounding to decimal places, as `$round` and `$trunc` do it: through a decimal, so that 2.345 is 2.345 and not the
//! double below it.

use super::super::prelude::*;

pub(super) fn to_places<'a>(
    operator: &str,
    args: &Given<'_, 'a>,
    decimal: fn(Decimal128, i32) -> Decimal128,
    double: fn(f64) -> f64,
) -> Result<Value<'a>> {
    let value = args.at(0)?;
    if value.is_nullish() {
        return Ok(Value::NULL);
    }
    let Some(number) = Number::of(value.or_null()) else {
        return refuse(51081, format!("{operator} only supports numeric types, not {}", type_name(&value)));
    };
    let places = match args.optional(1)? {
        None => 0,
        Some(value) if value.is_nullish() => return Ok(Value::NULL),
        Some(value) => precision(operator, &value)?,
    };
    Ok(match number {
        Number::Decimal(x) => decimal(x, places).into(),
        Number::Double(x) if places == 0 || !x.is_finite() => double(x).into(),
        Number::Double(x) => decimal(Decimal128::from_f64_full(x), places).to_f64().into(),
        whole if places >= 0 => whole.to_value().into(),
        whole => {
            let rounded = decimal(whole.to_decimal(), places);
            let Ok(x) = rounded.to_i64(Rounding::HalfEven) else {
                let message = format!("invalid conversion from Decimal128 result in {operator}");
                return refuse(51080, message);
            };
            match whole {
                Number::Int32(_) => Number::narrowest(x).to_value().into(),
                _ => x.into(),
            }
        }
    })
}

fn precision(operator: &str, value: &Value<'_>) -> Result<i32> {
    let Some(number) = Number::of(value.or_null()) else {
        return refuse(16004, format!("can't convert from BSON type {} to long", type_name(value)));
    };
    match number.as_exact_i64() {
        Some(places @ -20..=100) => Ok(places as i32),
        Some(places) => {
            refuse(51083, format!("cannot apply {operator} with precision value {places} value must be in [-20, 100]"))
        }
        None => refuse(51082, format!("precision argument to  {operator} must be a integral value")),
    }
}
