//! `$ne`: True if they differ.

use super::super::prelude::*;

pub(super) static NE: Operator =
    Operator { name: "$ne", args: Args::Exactly(2), eval: Eval::Strict(ne), doc: "True if they differ." };

fn ne<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(compare_values(&args[0], &args[1]).is_ne().into())
}
