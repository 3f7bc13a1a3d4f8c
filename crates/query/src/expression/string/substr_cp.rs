//! `$substrCP`: A part of a string by position and length in code points.

use super::super::prelude::*;

pub(super) static SUBSTR_CP: Operator = Operator {
    name: "$substrCP",
    args: Args::Exactly(3),
    eval: Eval::Strict(substr_cp),
    doc: "A part of a string by position and length in code points.",
};

fn substr_cp<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let text = super::coerce::text(&args[0])?;
    let start = whole(&args[1], "starting index", 34450, 34451)?;
    let length = whole(&args[2], "length", 34452, 34453)?;
    let Ok(length) = usize::try_from(length) else {
        return refuse(34454, "$substrCP: length must be a nonnegative integer.");
    };
    let Ok(start) = usize::try_from(start) else {
        return refuse(34455, "$substrCP: the starting index must be nonnegative integer.");
    };
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]).skip(start);
    let from = starts.next().unwrap_or(text.len());
    let to = if length == 0 { from } else { starts.nth(length - 1).unwrap_or(text.len()) };
    Ok(Value::string(&text[from..to]))
}

fn whole(value: &Value<'_>, what: &str, not_number: i32, not_int: i32) -> Result<i32> {
    let Some(number) = Number::of(value.or_null()) else {
        let found = type_name(value);
        return refuse(not_number, format!("$substrCP: {what} must be a numeric type (is BSON type {found})"));
    };
    match number.as_exact_i64().and_then(|n| i32::try_from(n).ok()) {
        Some(n) => Ok(n),
        None => refuse(not_int, format!("$substrCP: {what} cannot be represented as a 32-bit integral value")),
    }
}
