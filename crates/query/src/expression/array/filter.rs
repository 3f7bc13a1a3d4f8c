//! `$filter`: The elements for which a condition is true, at most `limit` of them.

use super::super::prelude::*;

pub(super) static FILTER: Operator = Operator {
    name: "$filter",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The elements for which a condition is true, at most `limit` of them.",
};

static NAMED: Named = Named {
    fields: &[
        Field::required("input", 28648),
        Field::optional("as"),
        Field::required("cond", 28650),
        Field::optional("limit"),
    ],
    not_object: 28646,
    unknown: 28647,
};

#[derive(Debug)]
struct Filter {
    input: Node,
    cond: Node,
    limit: Option<Node>,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let given = NAMED.split("$filter", argument)?;
    let [Some(input), name, Some(cond), limit] = given[..] else {
        return Err(Error::internal("a required argument of $filter is not there"));
    };
    let name = super::variable(name)?;
    Ok(Node::custom(Filter {
        input: operand(input, scope)?,
        cond: operand(cond, &scope.with(name))?,
        limit: limit.map(|limit| operand(limit, scope)).transpose()?,
    }))
}

impl Custom for Filter {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let input = self.input.eval(env)?;
        let array = match input.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::Array(array)) => array,
            Some(other) => {
                return refuse(28651, format!("input to $filter must be an array not {}", other.ty().name()));
            }
        };
        let limit = match &self.limit {
            _ if array.is_empty() => return Ok(Value::array(ArrayBuf::new())),
            Some(limit) => limit_of(&limit.eval(env)?)?,
            None => usize::MAX,
        };
        let mut out = ArrayBuf::new();
        let mut inner = env.nested();
        let slot = inner.depth();
        inner.push(None);
        for value in array.iter() {
            inner.context.interrupt.check()?;
            inner.set(slot, Some(value));
            if truthy(&self.cond.eval(&inner)?) {
                out.push(value);
                if out.len() >= limit {
                    break;
                }
            }
        }
        Ok(Value::array(out))
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.input, &self.cond].into_iter().chain(&self.limit).for_each(visit);
    }
}

fn limit_of(value: &Value<'_>) -> Result<usize> {
    if value.is_nullish() {
        return Ok(usize::MAX);
    }
    let limit = Number::of(value.or_null()).and_then(Number::as_exact_i64).and_then(|n| i32::try_from(n).ok());
    match limit {
        None => refuse(
            327391,
            format!("$filter: limit must be represented as a 32-bit integral value: {:?}", value.or_null()),
        ),
        Some(n @ 1..) => Ok(n as usize),
        Some(n) => refuse(327392, format!("$filter: limit must be greater than 0: {n}")),
    }
}
