//! `$second`: The second of a date.

use super::super::prelude::*;

pub(super) static SECOND: Operator =
    Operator { name: "$second", args: Args::Any, eval: Eval::Special(parse), doc: "The second of a date." };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$second", |c| (c.second as i32).into(), argument, scope)
}
