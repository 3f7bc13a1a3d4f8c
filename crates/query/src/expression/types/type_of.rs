//! `$type`: The name of the type of a value, or missing.

use super::super::prelude::*;

pub(super) static TYPE: Operator = Operator {
    name: "$type",
    args: Args::Exactly(1),
    eval: Eval::Strict(type_of),
    doc: "The name of the type of a value, or missing.",
};

fn type_of<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Ref(ValueRef::String(type_name(&args[0]))))
}
