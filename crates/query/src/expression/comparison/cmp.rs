//! `$cmp`: -1, 0 or 1 as the first is less than, equal to or greater than the second, in BSON order.

use super::super::prelude::*;

pub(super) static CMP: Operator = Operator {
    name: "$cmp",
    args: Args::Exactly(2),
    eval: Eval::Collated(cmp),
    doc: "-1, 0 or 1 as the first is less than, equal to or greater than the second, in BSON order.",
};

fn cmp<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    Ok((compare_values(&args[0], &args[1], collator) as i32).into())
}
