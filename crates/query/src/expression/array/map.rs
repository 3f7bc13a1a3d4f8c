//! `$map`: The results of an expression for each element.

use super::super::prelude::*;

pub(super) static MAP: Operator = Operator {
    name: "$map",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The results of an expression for each element.",
};

static NAMED: Named = Named {
    fields: &[Field::required("input", 16880), Field::optional("as"), Field::required("in", 16882)],
    not_object: 16878,
    unknown: 16879,
};

#[derive(Debug)]
struct Map {
    input: Node,
    body: Node,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let given = NAMED.split("$map", argument)?;
    let [Some(input), name, Some(body)] = given[..] else {
        return Err(Error::internal("a required argument of $map is not there"));
    };
    let name = super::variable(name)?;
    Ok(Node::custom(Map { input: operand(input, scope)?, body: operand(body, &scope.with(name))? }))
}

impl Custom for Map {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let input = self.input.eval(env)?;
        let array = match input.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::Array(array)) => array,
            Some(other) => {
                return refuse(16883, format!("input to $map must be an array not {}", other.ty().name()));
            }
        };
        let mut out = ArrayBuf::new();
        let mut inner = env.nested();
        let slot = inner.depth();
        inner.push(None);
        for value in array.iter() {
            inner.context.interrupt.check()?;
            inner.set(slot, Some(value));
            out.push_value(&self.body.eval(&inner)?);
        }
        Ok(Value::array(out))
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.input, &self.body].into_iter().for_each(visit);
    }
}
