//! `$ceil`: A number rounded up to a whole one of the same type.

use super::super::prelude::*;

pub(super) static CEIL: Operator = Operator {
    name: "$ceil",
    args: Args::Exactly(1),
    eval: Eval::Strict(ceil),
    doc: "A number rounded up to a whole one of the same type.",
};

fn ceil<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(match super::unary::number("$ceil", &args[0])? {
        None => Value::NULL,
        Some(Number::Double(x)) => x.ceil().into(),
        Some(Number::Decimal(x)) => x.ceil().into(),
        Some(whole) => whole.to_value().into(),
    })
}
