//! `$toLower`: A string with its ASCII letters in lower case.

use super::super::prelude::*;

pub(super) static TO_LOWER: Operator = Operator {
    name: "$toLower",
    args: Args::Exactly(1),
    eval: Eval::Strict(to_lower),
    doc: "A string with its ASCII letters in lower case.",
};

fn to_lower<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::string(super::coerce::text(&args[0])?.to_ascii_lowercase()))
}
