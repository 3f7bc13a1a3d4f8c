//! `$slice`: A part of an array: the first or (if negative) last n elements, or n from a position on.

use super::super::prelude::*;

pub(super) static SLICE: Operator = Operator {
    name: "$slice",
    args: Args::Between(2, 3),
    eval: Eval::Lazy(slice),
    doc: "A part of an array: the first or (if negative) last n elements, or n from a position on.",
};

fn slice<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let (whole_array, first) = (args.at(0)?, args.at(1)?);
    if whole_array.is_nullish() || first.is_nullish() {
        return Ok(Value::NULL);
    }
    let Some(ValueRef::Array(array)) = whole_array.as_ref() else {
        let found = type_name(&whole_array);
        return refuse(28724, format!("First argument to $slice must be an array, but is of type: {found}"));
    };
    let first = whole(&first, "Second", 28725, 28726)?;
    let (skip, take) = match args.optional(2)? {
        None if first >= 0 => (0, first as usize),
        None => (from_end(array, first), usize::MAX),
        Some(count) if count.is_nullish() => return Ok(Value::NULL),
        Some(count) => {
            let count = whole(&count, "Third", 28727, 28728)?;
            if count <= 0 {
                return refuse(28729, format!("Third argument to $slice must be positive: {count}"));
            }
            (if first >= 0 { first as usize } else { from_end(array, first) }, count as usize)
        }
    };
    Ok(Value::array(array.iter().skip(skip).take(take).collect()))
}

fn from_end(array: RawArray<'_>, back: i32) -> usize {
    array.len().saturating_sub(back.unsigned_abs() as usize)
}

fn whole(value: &Value<'_>, which: &str, not_number: i32, not_int: i32) -> Result<i32> {
    let Some(number) = Number::of(value.or_null()) else {
        let found = type_name(value);
        return refuse(
            not_number,
            format!("{which} argument to $slice must be a numeric value, but is of type: {found}"),
        );
    };
    match number.as_exact_i64().and_then(|n| i32::try_from(n).ok()) {
        Some(n) => Ok(n),
        None => {
            refuse(not_int, format!("{which} argument to $slice can't be represented as a 32-bit integer: {number:?}"))
        }
    }
}
