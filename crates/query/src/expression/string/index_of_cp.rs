//! `$indexOfCP`: The position of a string in another, counted in code points, or -1.

use super::super::prelude::*;

pub(super) static INDEX_OF_CP: Operator = Operator {
    name: "$indexOfCP",
    args: Args::Between(2, 4),
    eval: Eval::Lazy(index_of_cp),
    doc: "The position of a string in another, counted in code points, or -1.",
};

use super::super::array::index_of_array::bound;

fn index_of_cp<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let first = args.at(0)?;
    let text = match first.as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
        Some(ValueRef::String(text)) => text,
        Some(other) => {
            let found = other.ty().name();
            return refuse(40093, format!("$indexOfCP requires a string as the first argument, found: {found}"));
        }
    };
    let token = args.at(1)?;
    let Some(ValueRef::String(token)) = token.as_ref() else {
        let found = type_name(&token);
        return refuse(40094, format!("$indexOfCP requires a string as the second argument, found: {found}"));
    };
    let start = args.optional(2)?.map_or(Ok(0), |v| bound("$indexOfCP", &v, "starting"))?;
    let end = args.optional(3)?.map_or(Ok(usize::MAX), |v| bound("$indexOfCP", &v, "ending"))?;
    // Only positions inside the text are tried: nothing is found at its very end, not even the empty string.
    let found =
        (text.char_indices().enumerate().take(end).skip(start)).find(|(_, (at, _))| text[*at..].starts_with(token));
    Ok(match found {
        Some((at, _)) => at as i32,
        None if text.is_empty() && token.is_empty() && start == 0 => 0,
        None => -1,
    }
    .into())
}
