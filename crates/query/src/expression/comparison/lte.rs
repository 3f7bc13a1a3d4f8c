//! `$lte`: True if the first is less than or equal to the second, in BSON order.

use super::super::prelude::*;

pub(super) static LTE: Operator = Operator {
    name: "$lte",
    args: Args::Exactly(2),
    eval: Eval::Collated(lte),
    doc: "True if the first is less than or equal to the second, in BSON order.",
};

fn lte<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    Ok(compare_values(&args[0], &args[1], collator).is_le().into())
}
