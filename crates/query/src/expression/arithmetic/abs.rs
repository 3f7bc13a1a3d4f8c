//! `$abs`: The absolute value of a number.

use super::super::prelude::*;

pub(super) static ABS: Operator =
    Operator { name: "$abs", args: Args::Exactly(1), eval: Eval::Strict(abs), doc: "The absolute value of a number." };

fn abs<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(match super::unary::number("$abs", &args[0])? {
        None => Value::NULL,
        Some(Number::Int32(x)) => Number::narrowest(i64::from(x).abs()).to_value().into(),
        Some(Number::Int64(i64::MIN)) => return refuse(28680, "can't take $abs of long long min"),
        Some(Number::Int64(x)) => x.abs().into(),
        Some(Number::Double(x)) => x.abs().into(),
        Some(Number::Decimal(x)) => x.abs().into(),
    })
}
