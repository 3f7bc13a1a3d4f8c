//! `$lte`: True if the first is less than or equal to the second, in BSON order.

use super::super::prelude::*;

pub(super) static LTE: Operator = Operator {
    name: "$lte",
    args: Args::Exactly(2),
    eval: Eval::Strict(lte),
    doc: "True if the first is less than or equal to the second, in BSON order.",
};

fn lte<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(compare_values(&args[0], &args[1]).is_le().into())
}
