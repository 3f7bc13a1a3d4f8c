//! `$toInt`: A value converted to an int; null stays null.

use super::super::prelude::*;

pub(super) static TO_INT: Operator = Operator {
    name: "$toInt",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A value converted to an int; null stays null.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::single::parse("$toInt", Type::Int32, argument, scope)
}
