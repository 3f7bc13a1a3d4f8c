//! `$eq`: True if both are equal.

use super::super::prelude::*;

pub(super) static EQ: Operator =
    Operator { name: "$eq", args: Args::Exactly(2), eval: Eval::Collated(eq), doc: "True if both are equal." };

fn eq<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    Ok(compare_values(&args[0], &args[1], collator).is_eq().into())
}
