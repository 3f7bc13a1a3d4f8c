//! `$week`: The week of the year of a date, from 0; weeks begin on Sunday.

use super::super::prelude::*;

pub(super) static WEEK: Operator = Operator {
    name: "$week",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The week of the year of a date, from 0; weeks begin on Sunday.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$week", |c| (c.week() as i32).into(), argument, scope)
}
