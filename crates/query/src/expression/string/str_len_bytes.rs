//! `$strLenBytes`: The length of a string in bytes.

use super::super::prelude::*;

pub(super) static STR_LEN_BYTES: Operator = Operator {
    name: "$strLenBytes",
    args: Args::Exactly(1),
    eval: Eval::Strict(str_len_bytes),
    doc: "The length of a string in bytes.",
};

fn str_len_bytes<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        Some(ValueRef::String(text)) => Ok((text.len() as i32).into()),
        _ => refuse(34473, format!("$strLenBytes requires a string argument, found: {}", type_name(&args[0]))),
    }
}
