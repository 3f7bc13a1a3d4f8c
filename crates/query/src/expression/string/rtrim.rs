//! `$rtrim`: A string without the white space, or the given characters, at the end.

use super::super::prelude::*;

pub(super) static RTRIM: Operator = Operator {
    name: "$rtrim",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A string without the white space, or the given characters, at the end.",
};

use super::trimming::{self, Sides};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    trimming::parse(Sides { operator: "$rtrim", left: false, right: true }, argument, scope)
}
