//! `$toLong`: A value converted to a long; null stays null.

use super::super::prelude::*;

pub(super) static TO_LONG: Operator = Operator {
    name: "$toLong",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A value converted to a long; null stays null.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::single::parse("$toLong", Type::Int64, argument, scope)
}
