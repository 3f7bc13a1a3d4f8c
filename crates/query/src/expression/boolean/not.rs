//! `$not`: The opposite of a truth value.

use super::super::prelude::*;

pub(super) static NOT: Operator =
    Operator { name: "$not", args: Args::Exactly(1), eval: Eval::Strict(not), doc: "The opposite of a truth value." };

fn not<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok((!truthy(&args[0])).into())
}
