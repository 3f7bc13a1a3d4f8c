//! `$toBool`: A value converted to a bool; null stays null.

use super::super::prelude::*;

pub(super) static TO_BOOL: Operator = Operator {
    name: "$toBool",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A value converted to a bool; null stays null.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::single::parse("$toBool", Type::Bool, argument, scope)
}
