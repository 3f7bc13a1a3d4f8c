//! `$toObjectId`: A value converted to an ObjectId; null stays null.

use super::super::prelude::*;

pub(super) static TO_OBJECT_ID: Operator = Operator {
    name: "$toObjectId",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A value converted to an ObjectId; null stays null.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::single::parse("$toObjectId", Type::ObjectId, argument, scope)
}
