//! Conversions to numbers.

use super::super::prelude::*;
use super::conversion::{failure, unsupported};

pub(super) fn to_int(value: ValueRef<'_>) -> Result<i32> {
    let whole = match value {
        ValueRef::DateTime(_) => return unsupported(value, Type::Int32),
        ValueRef::String(text) => parse_whole(text)?,
        // Judged before the fraction is cut off.
        ValueRef::Double(x) if x.is_finite() && !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&x) => {
            return overflow(value);
        }
        _ => to_whole(value, Type::Int32)?,
    };
    i32::try_from(whole).or_else(|_| overflow(value))
}

pub(super) fn to_long(value: ValueRef<'_>) -> Result<i64> {
    match value {
        ValueRef::DateTime(ms) => Ok(ms),
        ValueRef::String(text) => parse_whole(text),
        _ => to_whole(value, Type::Int64),
    }
}

/// A fraction is cut off.
fn to_whole(value: ValueRef<'_>, to: Type) -> Result<i64> {
    match value {
        ValueRef::Bool(b) => Ok(b.into()),
        ValueRef::Int32(x) => Ok(x.into()),
        ValueRef::Int64(x) => Ok(x),
        ValueRef::Double(x) if x.is_nan() => nan(),
        ValueRef::Double(x) if x.is_infinite() => infinite(),
        ValueRef::Double(x) if x >= i64::MIN as f64 && x < i64::MAX as f64 => Ok(x as i64),
        ValueRef::Decimal(x) if x.is_nan() => nan(),
        ValueRef::Decimal(x) if x.is_infinite() => infinite(),
        ValueRef::Decimal(x) => x.to_i64(Rounding::TowardZero).or_else(|_| overflow(value)),
        ValueRef::Double(_) => overflow(value),
        other => unsupported(other, to),
    }
}

fn nan<T>() -> Result<T> {
    failure("Attempt to convert NaN value to integer type in $convert with no onError value")
}

fn infinite<T>() -> Result<T> {
    failure("Attempt to convert infinity value to integer type in $convert with no onError value")
}

fn overflow<T>(value: ValueRef<'_>) -> Result<T> {
    failure(format!("Conversion would overflow target type in $convert with no onError value: {value}"))
}

fn not_a_number<T>(text: &str, why: &str) -> Result<T> {
    failure(format!("Failed to parse number '{text}' in $convert with no onError value: {why}"))
}

fn parse_whole(text: &str) -> Result<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() {
        return not_a_number(text, "No digits");
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return not_a_number(text, "Did not consume whole string.");
    }
    text.parse().or_else(|_| not_a_number(text, "Overflow"))
}

pub(super) fn to_double(value: ValueRef<'_>) -> Result<f64> {
    match value {
        ValueRef::Bool(b) => Ok(f64::from(u8::from(b))),
        ValueRef::Int32(x) => Ok(x.into()),
        ValueRef::Int64(x) => Ok(x as f64),
        ValueRef::DateTime(ms) => Ok(ms as f64),
        ValueRef::Decimal(x) => x.to_f64_checked().or_else(|_| overflow(value)),
        ValueRef::String(text) => parse_double(text),
        other => unsupported(other, Type::Double),
    }
}

/// What C's `strtod` reads, but no white space and no hexadecimal, and nothing that is not a normal double.
fn parse_double(text: &str) -> Result<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts = unsigned.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'.');
    let Some(x) = text.parse::<f64>().ok().filter(|_| starts) else {
        return not_a_number(text, "Did not consume whole string.");
    };
    let has_digit = unsigned.bytes().next().is_some_and(|b| b.is_ascii_digit() || b == b'.');
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = mantissa.bytes().all(|b| matches!(b, b'0' | b'.'));
    if has_digit && (x.is_infinite() || (x.abs() < f64::MIN_POSITIVE && !is_zero)) {
        return not_a_number(text, "Out of range");
    }
    Ok(x)
}

pub(super) fn to_decimal(value: ValueRef<'_>) -> Result<Decimal128> {
    match value {
        ValueRef::Bool(b) => Ok(Decimal128::from_i32(b.into())),
        ValueRef::DateTime(ms) => Ok(Decimal128::from_i64(ms)),
        ValueRef::String(text) => Decimal128::parse(text, Rounding::TowardZero)
            .or_else(|_| not_a_number(text, "Failed to parse string to decimal")),
        other => match Number::of(other) {
            Some(number) => Ok(number.to_decimal()),
            None => unsupported(other, Type::Decimal),
        },
    }
}
