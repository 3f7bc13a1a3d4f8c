//! Whole numbers as arguments of operators, and the words for those that are none.

use espalier_value::ValueRef;
use espalier_value::number::Number;

/// A number that is whole and fits a long; the error says why not, as MongoDB words it.
pub(crate) fn whole(name: &str, value: ValueRef<'_>) -> Result<i64, String> {
    let shown = || format!("{name}: {}", show(value));
    let number = Number::of(value).ok_or_else(|| format!("Expected a number in: {}", shown()))?;
    if let Some(whole) = number.as_exact_i64() {
        return Ok(whole);
    }
    if number.is_nan() {
        return Err(format!("Expected an integer, but found NaN in: {}", shown()));
    }
    let far = number.compare(Number::Int64(i64::MAX)).is_gt() || number.compare(Number::Int64(i64::MIN)).is_lt();
    Err(match far {
        true => format!("Cannot represent as a 64-bit integer: {}", shown()),
        false => format!("Expected an integer: {}", shown()),
    })
}

pub(crate) fn non_negative(name: &str, value: ValueRef<'_>) -> Result<i64, String> {
    match whole(name, value)? {
        negative @ ..0 => Err(format!("Expected a non-negative number in: {name}: {negative}")),
        number => Ok(number),
    }
}

/// A non-negative number that fits an int.
pub(crate) fn non_negative_int(name: &str, value: ValueRef<'_>) -> Result<i32, String> {
    let number = non_negative(name, value)?;
    i32::try_from(number).map_err(|_| format!("Cannot represent {name}: {number} in an int"))
}

/// A value as an error message shows it.
pub(crate) fn show(value: ValueRef<'_>) -> String {
    value.to_string()
}
