//! `$indexOfArray`: The index of a value in an array, or -1.

use super::super::prelude::*;

pub(super) static INDEX_OF_ARRAY: Operator = Operator {
    name: "$indexOfArray",
    args: Args::Between(2, 4),
    eval: Eval::Lazy(index_of_array),
    doc: "The index of a value in an array, or -1.",
};

fn index_of_array<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let first = args.at(0)?;
    let array = match first.as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
        Some(ValueRef::Array(array)) => array,
        Some(other) => {
            let found = other.ty().name();
            return refuse(40090, format!("$indexOfArray requires an array as a first argument, found: {found}"));
        }
    };
    let start = args.optional(2)?.map_or(Ok(0), |v| bound("$indexOfArray", &v, "starting"))?;
    let end = args.optional(3)?.map_or(Ok(usize::MAX), |v| bound("$indexOfArray", &v, "ending"))?;
    let wanted = args.at(1)?;
    let Some(wanted) = wanted.as_ref() else { return Ok((-1).into()) };
    let same = |value| args.collator().equal(value, wanted);
    let found = (array.iter().enumerate().take(end).skip(start)).find(|(_, value)| same(*value));
    Ok(found.map_or(-1, |(at, _)| at as i32).into())
}

/// A start or end index, as `$indexOfBytes` and `$indexOfCP` take it too.
pub(in crate::expression) fn bound(operator: &str, value: &Value<'_>, which: &str) -> Result<usize> {
    let whole = Number::of(value.or_null()).and_then(Number::as_exact_i64).and_then(|n| i32::try_from(n).ok());
    match whole {
        None => {
            let found = type_name(value);
            refuse(40096, format!("{operator} requires an integral {which} index, found a value of type: {found}"))
        }
        Some(n) => usize::try_from(n)
            .or_else(|_| refuse(40097, format!("{operator} requires a nonnegative {which} index, found: {n}"))),
    }
}
