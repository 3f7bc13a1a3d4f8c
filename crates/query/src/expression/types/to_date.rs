//! `$toDate`: A value converted to a date; null stays null.

use super::super::prelude::*;

pub(super) static TO_DATE: Operator = Operator {
    name: "$toDate",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A value converted to a date; null stays null.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::single::parse("$toDate", Type::DateTime, argument, scope)
}
