//! `$isoWeek`: The week of the year of a date by ISO 8601, from 1.

use super::super::prelude::*;

pub(super) static ISO_WEEK: Operator = Operator {
    name: "$isoWeek",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The week of the year of a date by ISO 8601, from 1.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$isoWeek", |c| (c.iso_week().1 as i32).into(), argument, scope)
}
