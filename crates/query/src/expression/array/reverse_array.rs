//! `$reverseArray`: An array with its elements in reverse order.

use super::super::prelude::*;

pub(super) static REVERSE_ARRAY: Operator = Operator {
    name: "$reverseArray",
    args: Args::Exactly(1),
    eval: Eval::Strict(reverse_array),
    doc: "An array with its elements in reverse order.",
};

fn reverse_array<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(Value::NULL),
        Some(ValueRef::Array(array)) => {
            let values: Vec<_> = array.iter().collect();
            Ok(Value::array(values.into_iter().rev().collect()))
        }
        Some(other) => refuse(
            34435,
            format!("The argument to $reverseArray must be an array, but was of type: {}", other.ty().name()),
        ),
    }
}
