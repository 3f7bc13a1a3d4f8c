//! `$reduce`: One value from an array: an expression of `$$value` so far and each element `$$this`.

use super::super::prelude::*;

pub(super) static REDUCE: Operator = Operator {
    name: "$reduce",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "One value from an array: an expression of `$$value` so far and each element `$$this`.",
};

static NAMED: Named = Named {
    fields: &[Field::required("input", 40077), Field::required("initialValue", 40078), Field::required("in", 40079)],
    not_object: 40075,
    unknown: 40076,
};

#[derive(Debug)]
struct Reduce {
    input: Node,
    initial: Node,
    body: Node,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let given = NAMED.split("$reduce", argument)?;
    let [Some(input), Some(initial), Some(body)] = given[..] else {
        return Err(Error::internal("a required argument of $reduce is not there"));
    };
    Ok(Node::custom(Reduce {
        input: operand(input, scope)?,
        initial: operand(initial, scope)?,
        body: operand(body, &scope.with("this").with("value"))?,
    }))
}

impl Custom for Reduce {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let input = self.input.eval(env)?;
        let array = match input.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::Array(array)) => array,
            Some(other) => {
                return refuse(40080, format!("$reduce requires that 'input' be an array, found: {other:?}"));
            }
        };
        let mut value = self.initial.eval(env)?;
        for this in array.iter() {
            env.context.interrupt.check()?;
            // Each step makes its own scope: its value lives only until the next one is computed.
            let next = {
                let mut inner = env.nested();
                inner.push(Some(this));
                inner.push(value.as_ref());
                self.body.eval(&inner)?.into_owned()
            };
            value = next;
        }
        Ok(value)
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.input, &self.initial, &self.body].into_iter().for_each(visit);
    }
}
