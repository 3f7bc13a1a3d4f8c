//! `$gt`: True if the first is greater than the second, in BSON order.

use super::super::prelude::*;

pub(super) static GT: Operator = Operator {
    name: "$gt",
    args: Args::Exactly(2),
    eval: Eval::Collated(gt),
    doc: "True if the first is greater than the second, in BSON order.",
};

fn gt<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    Ok(compare_values(&args[0], &args[1], collator).is_gt().into())
}
