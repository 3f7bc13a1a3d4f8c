//! `$toString`: A value converted to a string; null stays null.

use super::super::prelude::*;

pub(super) static TO_STRING: Operator = Operator {
    name: "$toString",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A value converted to a string; null stays null.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::single::parse("$toString", Type::String, argument, scope)
}
