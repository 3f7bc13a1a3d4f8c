//! `$tsSecond`: The seconds of a timestamp.

use super::super::prelude::*;

pub(super) static TS_SECOND: Operator = Operator {
    name: "$tsSecond",
    args: Args::Exactly(1),
    eval: Eval::Strict(ts_second),
    doc: "The seconds of a timestamp.",
};

fn ts_second<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(Value::NULL),
        Some(ValueRef::Timestamp(t)) => Ok(((t >> 32) as i64).into()),
        Some(other) => {
            refuse(5687301, format!("Argument to $tsSecond must be a timestamp, but is {}", other.ty().name()))
        }
    }
}
