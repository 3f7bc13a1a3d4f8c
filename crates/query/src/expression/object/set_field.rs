//! `$setField`: A document with one field set, or removed if the value is missing; the name may hold dots and dollars.

use super::super::prelude::*;

pub(super) static SET_FIELD: Operator = Operator {
    name: "$setField",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A document with one field set, or removed if the value is missing; the name may hold dots and dollars.",
};

static NAMED: Named = Named {
    fields: &[Field::required("field", 4161102), Field::required("input", 4161109), Field::required("value", 4161103)],
    not_object: 4161100,
    unknown: 4161101,
};

pub(super) static CODES: super::field_name::Codes =
    super::field_name::Codes { reference: 4161108, computed: 4161106, not_string: 4161107 };

#[derive(Debug)]
pub(super) struct SetField {
    pub field: Box<str>,
    pub input: Node,
    pub value: Node,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let given = NAMED.split("$setField", argument)?;
    let [Some(field), Some(input), Some(value)] = given[..] else {
        return Err(Error::internal("a required argument of $setField is not there"));
    };
    let field = super::field_name::parse("$setField", field, &CODES)?;
    Ok(Node::custom(SetField { field, input: operand(input, scope)?, value: operand(value, scope)? }))
}

impl Custom for SetField {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let input = self.input.eval(env)?;
        let doc = match input.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::Document(doc)) => doc,
            Some(_) => return refuse(4161105, "$setField requires 'input' to evaluate to type Object"),
        };
        let value = self.value.eval(env)?;
        let mut out = DocBuf::with_capacity(doc.as_bytes().len() + 32);
        let mut done = false;
        for elem in doc {
            if elem.name() != &*self.field {
                out.append_elem(elem);
            } else if !done {
                done = true;
                out.append_value(&self.field, &value);
            }
        }
        if !done {
            out.append_value(&self.field, &value);
        }
        Ok(Value::document(out))
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.input, &self.value].into_iter().for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
