//! `$isArray`: True if the value is an array.

use super::super::prelude::*;

pub(super) static IS_ARRAY: Operator = Operator {
    name: "$isArray",
    args: Args::Exactly(1),
    eval: Eval::Strict(is_array),
    doc: "True if the value is an array.",
};

fn is_array<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(matches!(args[0].as_ref(), Some(ValueRef::Array(_))).into())
}
