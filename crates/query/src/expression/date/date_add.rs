//! `$dateAdd`: A date some units of time later.

use super::super::prelude::*;

pub(super) static DATE_ADD: Operator =
    Operator { name: "$dateAdd", args: Args::Any, eval: Eval::Special(parse), doc: "A date some units of time later." };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_arithmetic::parse("$dateAdd", false, argument, scope)
}
