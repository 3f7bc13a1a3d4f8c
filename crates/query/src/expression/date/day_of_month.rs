//! `$dayOfMonth`: The day of the month of a date, from 1.

use super::super::prelude::*;

pub(super) static DAY_OF_MONTH: Operator = Operator {
    name: "$dayOfMonth",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The day of the month of a date, from 1.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$dayOfMonth", |c| (c.day as i32).into(), argument, scope)
}
