//! The conversions of `$convert` and `$toInt`, `$toString`, ….

use espalier_value::ObjectId;
use espalier_value::date::Iso;
use espalier_value::display::general;

use super::super::prelude::*;
use super::numbers;

/// Converts a value that is not null. `operator` is for the message only.
pub(super) fn convert<'a>(input: &Value<'a>, to: Type) -> Result<Value<'a>> {
    let Some(value) = input.as_ref() else { return Ok(Value::NULL) };
    if value.ty() == to && is_target(to) {
        return Ok(input.clone());
    }
    match to {
        Type::Bool => Ok(to_bool(value).into()),
        Type::Int32 => numbers::to_int(value).map(Value::from),
        Type::Int64 => numbers::to_long(value).map(Value::from),
        Type::Double => numbers::to_double(value).map(Value::from),
        Type::Decimal => numbers::to_decimal(value).map(Value::from),
        Type::String => to_string(value).map(Value::string),
        Type::DateTime => to_date(value).map(|ms| Value::Ref(ValueRef::DateTime(ms))),
        Type::ObjectId => to_object_id(value).map(|id| Value::Ref(ValueRef::ObjectId(id.0))),
        _ => unsupported(value, to),
    }
}

/// The types that something can be converted to.
fn is_target(to: Type) -> bool {
    matches!(
        to,
        Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::Double
            | Type::Decimal
            | Type::String
            | Type::DateTime
            | Type::ObjectId
    )
}

pub(super) fn failure<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code::ConversionFailure, message))
}

pub(super) fn unsupported<T>(value: ValueRef<'_>, to: Type) -> Result<T> {
    failure(format!(
        "Unsupported conversion from {} to {} in $convert with no onError value",
        value.ty().name(),
        to.name()
    ))
}

fn to_bool(value: ValueRef<'_>) -> bool {
    // Strings, dates, documents and the like are true, even if empty.
    truthy_ref(value)
}

fn to_string(value: ValueRef<'_>) -> Result<String> {
    Ok(match value {
        ValueRef::Bool(b) => b.to_string(),
        ValueRef::Int32(x) => x.to_string(),
        ValueRef::Int64(x) => x.to_string(),
        ValueRef::Double(x) if x.is_nan() => "NaN".into(),
        ValueRef::Double(x) if x.is_infinite() => if x > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        ValueRef::Double(x) => general(x, 6),
        ValueRef::Decimal(x) => x.to_string(),
        ValueRef::ObjectId(id) => ObjectId(id).to_string(),
        ValueRef::DateTime(ms) => match Iso::of(ms) {
            Some(iso) => iso.to_string(),
            None => return failure("date is out of the range that can be written as a string"),
        },
        other => return unsupported(other, Type::String),
    })
}

fn to_date(value: ValueRef<'_>) -> Result<i64> {
    match value {
        ValueRef::Int64(ms) => Ok(ms),
        ValueRef::Double(_) | ValueRef::Decimal(_) => numbers::to_long(value),
        ValueRef::String(text) => Ok(super::super::date::parse_date::parse(text)?.ms),
        ValueRef::ObjectId(id) => Ok(i64::from(ObjectId(id).seconds()) * 1000),
        ValueRef::Timestamp(t) => Ok((t >> 32) as i64 * 1000),
        other => unsupported(other, Type::DateTime),
    }
}

fn to_object_id(value: ValueRef<'_>) -> Result<ObjectId> {
    match value {
        ValueRef::String(text) => match ObjectId::parse_hex(text) {
            Some(id) => Ok(id),
            None => failure(format!("Failed to parse objectId '{text}' in $convert with no onError value")),
        },
        other => unsupported(other, Type::ObjectId),
    }
}
