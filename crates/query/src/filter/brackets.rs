//! Type brackets: a comparison speaks only of values that compare with its argument (`{$gt: "a"}` of strings). Here
//! is where each group of types begins and ends in BSON's order.

use espalier_value::{RawArray, RawDoc, Type, Value, ValueRef};

use super::bounds::Interval;

/// The least value of each rank, in order. The greatest values of strings, documents, … do not exist: a bracket ends
/// where the next one begins.
const LEAST: &[(Type, ValueRef<'static>)] = &[
    (Type::MinKey, ValueRef::MinKey),
    (Type::Undefined, ValueRef::Undefined),
    (Type::Null, ValueRef::Null),
    (Type::Double, ValueRef::Double(f64::NAN)),
    (Type::String, ValueRef::String("")),
    (Type::Document, ValueRef::Document(RawDoc::EMPTY)),
    (Type::Array, ValueRef::Array(RawArray::EMPTY)),
    (Type::Binary, ValueRef::Binary(0, &[])),
    (Type::ObjectId, ValueRef::ObjectId([0; 12])),
    (Type::Bool, ValueRef::Bool(false)),
    (Type::DateTime, ValueRef::DateTime(i64::MIN)),
    (Type::Timestamp, ValueRef::Timestamp(0)),
    (Type::Regex, ValueRef::Regex("", "")),
    (Type::DbPointer, ValueRef::DbPointer("", [0; 12])),
    (Type::JavaScript, ValueRef::JavaScript("")),
    (Type::JavaScriptWithScope, ValueRef::JavaScriptWithScope("", RawDoc::EMPTY)),
    (Type::MaxKey, ValueRef::MaxKey),
];

/// Every value of a rank.
pub(crate) fn interval(rank: u8) -> Interval {
    let (low, low_inclusive) = start(rank);
    let (high, high_inclusive) = end(rank);
    Interval::new(low, low_inclusive, high, high_inclusive)
}

/// The least value of a rank.
pub(crate) fn start(rank: u8) -> (Value<'static>, bool) {
    let least = LEAST.iter().find(|(ty, _)| ty.rank() == rank).map_or(ValueRef::MinKey, |(_, least)| *least);
    (Value::own(least), true)
}

/// Where a rank ends: at its greatest value if it has one, else before the next rank.
pub(crate) fn end(rank: u8) -> (Value<'static>, bool) {
    let greatest = match LEAST.iter().find(|(ty, _)| ty.rank() == rank) {
        Some((Type::Double, _)) => Some(ValueRef::Double(f64::INFINITY)),
        Some((Type::Bool, _)) => Some(ValueRef::Bool(true)),
        Some((Type::ObjectId, _)) => Some(ValueRef::ObjectId([0xFF; 12])),
        Some((Type::DateTime, _)) => Some(ValueRef::DateTime(i64::MAX)),
        Some((Type::Timestamp, _)) => Some(ValueRef::Timestamp(u64::MAX)),
        Some((Type::MinKey | Type::Undefined | Type::Null | Type::MaxKey, value)) => Some(*value),
        _ => None,
    };
    match greatest {
        Some(value) => (Value::own(value), true),
        None => {
            let next = LEAST.iter().find(|(ty, _)| ty.rank() > rank).map_or(ValueRef::MaxKey, |(_, least)| *least);
            (Value::own(next), false)
        }
    }
}
