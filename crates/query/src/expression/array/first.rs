//! `$first`: The first element of an array; missing if it is empty.

use super::super::prelude::*;

pub(super) static FIRST: Operator = Operator {
    name: "$first",
    args: Args::Exactly(1),
    eval: Eval::Strict(first),
    doc: "The first element of an array; missing if it is empty.",
};

fn first<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(Value::NULL),
        Some(ValueRef::Array(_)) => Ok(super::element(&args[0], 0)),
        Some(other) => refuse(28689, format!("$first's argument must be an array, but is {}", other.ty().name())),
    }
}
