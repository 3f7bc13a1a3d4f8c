//! `$dateSubtract`: A date some units of time earlier.

use super::super::prelude::*;

pub(super) static DATE_SUBTRACT: Operator = Operator {
    name: "$dateSubtract",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A date some units of time earlier.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_arithmetic::parse("$dateSubtract", true, argument, scope)
}
