//! `$size`: The number of elements of an array.

use super::super::prelude::*;

pub(super) static SIZE: Operator = Operator {
    name: "$size",
    args: Args::Exactly(1),
    eval: Eval::Strict(size),
    doc: "The number of elements of an array.",
};

fn size<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        Some(ValueRef::Array(array)) => Ok((array.len() as i32).into()),
        _ => refuse(17124, format!("The argument to $size must be an array, but was of type: {}", type_name(&args[0]))),
    }
}
