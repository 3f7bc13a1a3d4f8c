//! `$toUpper`: A string with its ASCII letters in upper case.

use super::super::prelude::*;

pub(super) static TO_UPPER: Operator = Operator {
    name: "$toUpper",
    args: Args::Exactly(1),
    eval: Eval::Strict(to_upper),
    doc: "A string with its ASCII letters in upper case.",
};

fn to_upper<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::string(super::coerce::text(&args[0])?.to_ascii_uppercase()))
}
