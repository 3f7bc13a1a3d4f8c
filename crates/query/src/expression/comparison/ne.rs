//! `$ne`: True if they differ.

use super::super::prelude::*;

pub(super) static NE: Operator =
    Operator { name: "$ne", args: Args::Exactly(2), eval: Eval::Collated(ne), doc: "True if they differ." };

fn ne<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    Ok(compare_values(&args[0], &args[1], collator).is_ne().into())
}
