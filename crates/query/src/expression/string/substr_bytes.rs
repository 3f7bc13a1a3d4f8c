//! `$substrBytes`: A part of a string by byte position and length; to the end if the length is negative.

use super::super::prelude::*;

pub(super) static SUBSTR_BYTES: Operator = Operator {
    name: "$substrBytes",
    args: Args::Exactly(3),
    eval: Eval::Strict(substr_bytes),
    doc: "A part of a string by byte position and length; to the end if the length is negative.",
};

/// The old name.
pub(super) static SUBSTR: Operator = Operator {
    name: "$substr",
    args: Args::Exactly(3),
    eval: Eval::Strict(substr_bytes),
    doc: "MongoDB's old name of $substrBytes.",
};

fn substr_bytes<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let text = super::coerce::text(&args[0])?;
    let Some(start) = Number::of(args[1].or_null()) else {
        let message =
            format!("$substrBytes:  starting index must be a numeric type (is BSON type {})", type_name(&args[1]));
        return refuse(16034, message);
    };
    let Some(length) = Number::of(args[2].or_null()) else {
        let message = format!("$substrBytes:  length must be a numeric type (is BSON type {})", type_name(&args[2]));
        return refuse(16035, message);
    };
    let Ok(start) = usize::try_from(start.to_i64_clamped()) else {
        let message = format!("$substrBytes:  starting index must be non-negative (got: {})", start.to_i64_clamped());
        return refuse(50752, message);
    };
    if start >= text.len() {
        return Ok(Value::string(""));
    }
    let end = match usize::try_from(length.to_i64_clamped()) {
        Ok(length) => start.saturating_add(length).min(text.len()),
        Err(_) => text.len(),
    };
    if !text.is_char_boundary(start) {
        return refuse(28656, "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.");
    }
    match text.get(start..end) {
        Some(part) => Ok(Value::string(part)),
        None => refuse(28657, "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character."),
    }
}
