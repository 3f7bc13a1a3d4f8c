//! What `$replaceOne` and `$replaceAll` share.

use super::super::prelude::*;

pub(super) static NAMED: Named = Named {
    fields: &[Field::required("input", 51749), Field::required("find", 51748), Field::required("replacement", 51747)],
    not_object: 51751,
    unknown: 51750,
};

/// All three are looked at before one that is null makes the result null.
pub(super) fn replace<'a>(
    operator: &str,
    args: &[Value<'a>],
    with: impl FnOnce(&str, &str, &str) -> String,
) -> Result<Value<'a>> {
    let text = |at: usize, name: &str, code: i32| match args[at].as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
        Some(ValueRef::String(text)) => Ok(Some(text)),
        Some(other) => refuse(code, format!("{operator} requires that '{name}' be a string, found: {other}")),
    };
    let (input, find, replacement) =
        (text(0, "input", 51746)?, text(1, "find", 51745)?, text(2, "replacement", 51744)?);
    match (input, find, replacement) {
        (Some(input), Some(find), Some(replacement)) => Ok(Value::string(with(input, find, replacement))),
        _ => Ok(Value::NULL),
    }
}
