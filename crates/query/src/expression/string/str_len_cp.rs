//! `$strLenCP`: The length of a string in code points.

use super::super::prelude::*;

pub(super) static STR_LEN_CP: Operator = Operator {
    name: "$strLenCP",
    args: Args::Exactly(1),
    eval: Eval::Strict(str_len_cp),
    doc: "The length of a string in code points.",
};

fn str_len_cp<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        Some(ValueRef::String(text)) => Ok((text.chars().count() as i32).into()),
        _ => refuse(34471, format!("$strLenCP requires a string argument, found: {}", type_name(&args[0]))),
    }
}
