//! `$minute`: The minute of a date.

use super::super::prelude::*;

pub(super) static MINUTE: Operator =
    Operator { name: "$minute", args: Args::Any, eval: Eval::Special(parse), doc: "The minute of a date." };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$minute", |c| (c.minute as i32).into(), argument, scope)
}
