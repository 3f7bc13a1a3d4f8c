//! `$isoDayOfWeek`: The day of the week of a date by ISO 8601, from 1 (Monday) to 7.

use super::super::prelude::*;

pub(super) static ISO_DAY_OF_WEEK: Operator = Operator {
    name: "$isoDayOfWeek",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The day of the week of a date by ISO 8601, from 1 (Monday) to 7.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$isoDayOfWeek", |c| (c.iso_weekday() as i32).into(), argument, scope)
}
