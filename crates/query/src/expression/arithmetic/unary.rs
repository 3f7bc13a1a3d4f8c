//! What the operators on one number share.

use super::super::prelude::*;

/// The argument as a number; `None` if it is null or missing.
pub(super) fn number(operator: &str, value: &Value<'_>) -> Result<Option<Number>> {
    match value.as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
        Some(v) => match Number::of(v) {
            Some(number) => Ok(Some(number)),
            None => refuse(28765, format!("{operator} only supports numeric types, not {}", v.ty().name())),
        },
    }
}

/// Applies a function that gives a double for every type but decimal.
pub(in crate::expression) fn real<'a>(
    operator: &str,
    value: &Value<'_>,
    double: impl FnOnce(f64) -> Result<f64>,
    decimal: impl FnOnce(Decimal128) -> Result<Decimal128>,
) -> Result<Value<'a>> {
    Ok(match number(operator, value)? {
        None => Value::NULL,
        Some(Number::Decimal(x)) => decimal(x)?.into(),
        Some(other) => double(other.to_f64())?.into(),
    })
}
