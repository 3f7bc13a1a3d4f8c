//! `$toDouble`: A value converted to a double; null stays null.

use super::super::prelude::*;

pub(super) static TO_DOUBLE: Operator = Operator {
    name: "$toDouble",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A value converted to a double; null stays null.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::single::parse("$toDouble", Type::Double, argument, scope)
}
