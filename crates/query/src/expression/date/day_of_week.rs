//! `$dayOfWeek`: The day of the week of a date, from 1 (Sunday) to 7.

use super::super::prelude::*;

pub(super) static DAY_OF_WEEK: Operator = Operator {
    name: "$dayOfWeek",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The day of the week of a date, from 1 (Sunday) to 7.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$dayOfWeek", |c| ((c.iso_weekday() % 7 + 1) as i32).into(), argument, scope)
}
