//! `$lt`: True if the first is less than the second, in BSON order.

use super::super::prelude::*;

pub(super) static LT: Operator = Operator {
    name: "$lt",
    args: Args::Exactly(2),
    eval: Eval::Collated(lt),
    doc: "True if the first is less than the second, in BSON order.",
};

fn lt<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    Ok(compare_values(&args[0], &args[1], collator).is_lt().into())
}
