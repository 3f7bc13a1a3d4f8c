//! `$unsetField`: A document without one field, whose name may hold dots and dollars.

use super::super::prelude::*;

pub(super) static UNSET_FIELD: Operator = Operator {
    name: "$unsetField",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A document without one field, whose name may hold dots and dollars.",
};

use super::set_field::{CODES, SetField};

static NAMED: Named = Named {
    fields: &[Field::required("field", 4161102), Field::required("input", 4161109)],
    not_object: 4161100,
    unknown: 4161101,
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let given = NAMED.split("$unsetField", argument)?;
    let [Some(field), Some(input)] = given[..] else {
        return Err(Error::internal("a required argument of $unsetField is not there"));
    };
    let field = super::field_name::parse("$unsetField", field, &CODES)?;
    Ok(Node::custom(SetField { field, input: operand(input, scope)?, value: Node::Literal(Value::Missing) }))
}
