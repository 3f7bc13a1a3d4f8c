//! `$gte`: True if the first is greater than or equal to the second, in BSON order.

use super::super::prelude::*;

pub(super) static GTE: Operator = Operator {
    name: "$gte",
    args: Args::Exactly(2),
    eval: Eval::Collated(gte),
    doc: "True if the first is greater than or equal to the second, in BSON order.",
};

fn gte<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    Ok(compare_values(&args[0], &args[1], collator).is_ge().into())
}
