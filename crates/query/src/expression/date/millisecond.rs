//! `$millisecond`: The millisecond of a date.

use super::super::prelude::*;

pub(super) static MILLISECOND: Operator =
    Operator { name: "$millisecond", args: Args::Any, eval: Eval::Special(parse), doc: "The millisecond of a date." };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$millisecond", |c| (c.millisecond as i32).into(), argument, scope)
}
