//! `$ltrim`: A string without the white space, or the given characters, at the start.

use super::super::prelude::*;

pub(super) static LTRIM: Operator = Operator {
    name: "$ltrim",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A string without the white space, or the given characters, at the start.",
};

use super::trimming::{self, Sides};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    trimming::parse(Sides { operator: "$ltrim", left: true, right: false }, argument, scope)
}
