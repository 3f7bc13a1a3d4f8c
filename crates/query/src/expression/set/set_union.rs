//! `$setUnion`: The elements of all arrays, each once, in BSON order.

use super::super::prelude::*;

pub(super) static SET_UNION: Operator = Operator {
    name: "$setUnion",
    args: Args::Commutative,
    eval: Eval::Strict(set_union),
    doc: "The elements of all arrays, each once, in BSON order.",
};

use super::members::{Members, members, to_array};

fn set_union<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let mut all = Members::new();
    for arg in args {
        match arg.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::Array(array)) => {
                for (key, value) in members(array) {
                    all.entry(key).or_insert(value);
                }
            }
            Some(other) => {
                let found = other.ty().name();
                let message = format!("All operands of $setUnion must be arrays. One argument is of type: {found}");
                return refuse(17043, message);
            }
        }
    }
    Ok(to_array(all))
}
