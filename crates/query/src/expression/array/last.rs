//! `$last`: The last element of an array; missing if it is empty.

use super::super::prelude::*;

pub(super) static LAST: Operator = Operator {
    name: "$last",
    args: Args::Exactly(1),
    eval: Eval::Strict(last),
    doc: "The last element of an array; missing if it is empty.",
};

fn last<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(Value::NULL),
        Some(ValueRef::Array(_)) => Ok(super::element(&args[0], -1)),
        Some(other) => refuse(28689, format!("$last's argument must be an array, but is {}", other.ty().name())),
    }
}
