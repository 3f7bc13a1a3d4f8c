//! `$literal`: Its argument as it stands, not evaluated.

use super::super::prelude::*;

pub(super) static LITERAL: Operator = Operator {
    name: "$literal",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "Its argument as it stands, not evaluated.",
};

pub(super) static CONST: Operator =
    Operator { name: "$const", args: Args::Any, eval: Eval::Special(parse), doc: "MongoDB's old name of $literal." };

fn parse(argument: ValueRef<'_>, _scope: &Scope) -> Result<Node> {
    Ok(Node::Literal(Value::own(argument)))
}
