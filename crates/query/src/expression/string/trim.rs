//! `$trim`: A string without the white space, or the given characters, at both ends.

use super::super::prelude::*;

pub(super) static TRIM: Operator = Operator {
    name: "$trim",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A string without the white space, or the given characters, at both ends.",
};

use super::trimming::{self, Sides};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    trimming::parse(Sides { operator: "$trim", left: true, right: true }, argument, scope)
}
