//! `$cmp`: -1, 0 or 1 as the first is less than, equal to or greater than the second, in BSON order.

use super::super::prelude::*;

pub(super) static CMP: Operator = Operator {
    name: "$cmp",
    args: Args::Exactly(2),
    eval: Eval::Strict(cmp),
    doc: "-1, 0 or 1 as the first is less than, equal to or greater than the second, in BSON order.",
};

fn cmp<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok((compare_values(&args[0], &args[1]) as i32).into())
}
