//! `$isoWeekYear`: The year that the week of a date belongs to by ISO 8601.

use super::super::prelude::*;

pub(super) static ISO_WEEK_YEAR: Operator = Operator {
    name: "$isoWeekYear",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The year that the week of a date belongs to by ISO 8601.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$isoWeekYear", |c| c.iso_week().0.into(), argument, scope)
}
