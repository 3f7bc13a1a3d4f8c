//! `$tsIncrement`: The increment of a timestamp.

use super::super::prelude::*;

pub(super) static TS_INCREMENT: Operator = Operator {
    name: "$tsIncrement",
    args: Args::Exactly(1),
    eval: Eval::Strict(ts_increment),
    doc: "The increment of a timestamp.",
};

fn ts_increment<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(Value::NULL),
        Some(ValueRef::Timestamp(t)) => Ok((i64::from(t as u32)).into()),
        Some(other) => {
            refuse(5687302, format!("Argument to $tsIncrement must be a timestamp, but is {}", other.ty().name()))
        }
    }
}
