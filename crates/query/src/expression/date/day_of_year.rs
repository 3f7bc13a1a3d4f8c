//! `$dayOfYear`: The day of the year of a date, from 1.

use super::super::prelude::*;

pub(super) static DAY_OF_YEAR: Operator = Operator {
    name: "$dayOfYear",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The day of the year of a date, from 1.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$dayOfYear", |c| (c.day_of_year() as i32).into(), argument, scope)
}
