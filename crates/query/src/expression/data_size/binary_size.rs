//! `$binarySize`: The bytes of a string or binary value.

use super::super::prelude::*;

pub(super) static BINARY_SIZE: Operator = Operator {
    name: "$binarySize",
    args: Args::Exactly(1),
    eval: Eval::Strict(binary_size),
    doc: "The bytes of a string or binary value.",
};

fn binary_size<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(Value::NULL),
        Some(ValueRef::String(text)) => Ok((text.len() as i32).into()),
        Some(ValueRef::Binary(_, bytes)) => Ok((bytes.len() as i32).into()),
        Some(other) => {
            refuse(51276, format!("$binarySize requires a string or BinData argument, found: {}", other.ty().name()))
        }
    }
}
