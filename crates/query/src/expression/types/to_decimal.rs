//! `$toDecimal`: A value converted to a decimal; null stays null.

use super::super::prelude::*;

pub(super) static TO_DECIMAL: Operator = Operator {
    name: "$toDecimal",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A value converted to a decimal; null stays null.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::single::parse("$toDecimal", Type::Decimal, argument, scope)
}
