//! `$isNumber`: True if the value is an int, long, double or decimal.

use super::super::prelude::*;

pub(super) static IS_NUMBER: Operator = Operator {
    name: "$isNumber",
    args: Args::Exactly(1),
    eval: Eval::Strict(is_number),
    doc: "True if the value is an int, long, double or decimal.",
};

fn is_number<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(args[0].as_ref().is_some_and(ValueRef::is_number).into())
}
