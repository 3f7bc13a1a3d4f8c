//! `$trunc`: A number cut off at a decimal place.

use super::super::prelude::*;

pub(super) static TRUNC: Operator = Operator {
    name: "$trunc",
    args: Args::Between(1, 2),
    eval: Eval::Lazy(trunc),
    doc: "A number cut off at a decimal place.",
};

fn trunc<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    super::places::to_places("$trunc", args, Decimal128::trunc, f64::trunc)
}
