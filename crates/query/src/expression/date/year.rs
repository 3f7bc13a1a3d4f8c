//! `$year`: The year of a date.

use super::super::prelude::*;

pub(super) static YEAR: Operator =
    Operator { name: "$year", args: Args::Any, eval: Eval::Special(parse), doc: "The year of a date." };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$year", |c| (c.year as i32).into(), argument, scope)
}
