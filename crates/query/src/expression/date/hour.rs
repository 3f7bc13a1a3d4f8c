//! `$hour`: The hour of a date, from 0.

use super::super::prelude::*;

pub(super) static HOUR: Operator =
    Operator { name: "$hour", args: Args::Any, eval: Eval::Special(parse), doc: "The hour of a date, from 0." };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$hour", |c| (c.hour as i32).into(), argument, scope)
}
