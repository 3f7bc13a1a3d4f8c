//! Arithmetic on values as `$subtract` and `$divide` do it, for functions that compute with what documents hold.

use espalier_value::number::Number;
use espalier_value::{Error, Result, ValueRef};

/// The difference of two numbers, or of two dates in milliseconds.
pub(super) fn subtract(a: ValueRef<'_>, b: ValueRef<'_>) -> Result<Number> {
    match (a, b) {
        (ValueRef::DateTime(a), ValueRef::DateTime(b)) => Ok(Number::Int64(a.saturating_sub(b))),
        _ => match (Number::of(a), Number::of(b)) {
            (Some(a), Some(b)) => Ok(a.sub(b)),
            _ => {
                let (a, b) = (a.ty().name(), b.ty().name());
                Err(Error::type_mismatch(format!("can't $subtract {b} from {a}")))
            }
        },
    }
}

/// A decimal if either is, else a double.
pub(super) fn divide(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => Number::Decimal(a.to_decimal().div(b.to_decimal())),
        _ => Number::Double(a.to_f64() / b.to_f64()),
    }
}
