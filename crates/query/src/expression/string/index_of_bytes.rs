//! `$indexOfBytes`: The byte position of a string in another, or -1.

use super::super::prelude::*;

pub(super) static INDEX_OF_BYTES: Operator = Operator {
    name: "$indexOfBytes",
    args: Args::Between(2, 4),
    eval: Eval::Lazy(index_of_bytes),
    doc: "The byte position of a string in another, or -1.",
};

use super::super::array::index_of_array::bound;

fn index_of_bytes<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let first = args.at(0)?;
    let text = match first.as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
        Some(ValueRef::String(text)) => text.as_bytes(),
        Some(other) => {
            let found = other.ty().name();
            return refuse(40091, format!("$indexOfBytes requires a string as the first argument, found: {found}"));
        }
    };
    let token = args.at(1)?;
    let Some(ValueRef::String(token)) = token.as_ref() else {
        let found = type_name(&token);
        return refuse(40092, format!("$indexOfBytes requires a string as the second argument, found: {found}"));
    };
    let start = args.optional(2)?.map_or(Ok(0), |v| bound("$indexOfBytes", &v, "starting"))?;
    let end = args.optional(3)?.map_or(Ok(text.len()), |v| bound("$indexOfBytes", &v, "ending"))?.min(text.len());
    Ok(find(text, token.as_bytes(), start, end).into())
}

fn find(text: &[u8], token: &[u8], start: usize, end: usize) -> i32 {
    let Some(part) = text.get(start..end) else { return -1 };
    if token.is_empty() {
        return start as i32;
    }
    part.windows(token.len()).position(|w| w == token).map_or(-1, |at| (start + at) as i32)
}
