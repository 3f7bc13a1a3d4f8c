//! `$floor`: A number rounded down to a whole one of the same type.

use super::super::prelude::*;

pub(super) static FLOOR: Operator = Operator {
    name: "$floor",
    args: Args::Exactly(1),
    eval: Eval::Strict(floor),
    doc: "A number rounded down to a whole one of the same type.",
};

fn floor<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(match super::unary::number("$floor", &args[0])? {
        None => Value::NULL,
        Some(Number::Double(x)) => x.floor().into(),
        Some(Number::Decimal(x)) => x.floor().into(),
        Some(whole) => whole.to_value().into(),
    })
}
