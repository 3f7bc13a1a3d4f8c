//! `$getField`: A field by its name, which may hold dots and dollars.

use super::super::prelude::*;

pub(super) static GET_FIELD: Operator = Operator {
    name: "$getField",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A field by its name, which may hold dots and dollars.",
};

static NAMED: Named = Named {
    fields: &[Field::required("field", 3041702), Field::required("input", 3041703)],
    not_object: 3041704,
    unknown: 3041701,
};

static CODES: super::field_name::Codes =
    super::field_name::Codes { reference: 5654600, computed: 5654601, not_string: 5654602 };

#[derive(Debug)]
struct GetField {
    field: Box<str>,
    input: Node,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let is_named =
        matches!(argument, ValueRef::Document(doc) if !doc.first().is_some_and(|e| e.name().starts_with('$')));
    let (field, input) = if is_named {
        let given = NAMED.split("$getField", argument)?;
        let [Some(field), Some(input)] = given[..] else {
            return Err(Error::internal("a required argument of $getField is not there"));
        };
        (field, input)
    } else {
        (argument, ValueRef::String("$$CURRENT"))
    };
    let field = super::field_name::parse("$getField", field, &CODES)?;
    Ok(Node::custom(GetField { field, input: operand(input, scope)? }))
}

impl Custom for GetField {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let input = self.input.eval(env)?;
        Ok(match input.as_ref() {
            Some(ValueRef::Null | ValueRef::Undefined) => Value::NULL,
            _ => part(&input, |value| value.as_doc()?.get(&self.field)),
        })
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        visit(&self.input);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
