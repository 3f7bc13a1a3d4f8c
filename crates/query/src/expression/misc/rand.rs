//! `$rand`: A random number from 0 up to 1.

use super::super::prelude::*;

pub(super) static RAND: Operator =
    Operator { name: "$rand", args: Args::Any, eval: Eval::Special(parse), doc: "A random number from 0 up to 1." };

#[derive(Debug)]
struct Rand;

fn parse(argument: ValueRef<'_>, _scope: &Scope) -> Result<Node> {
    let is_empty = match argument {
        ValueRef::Document(doc) => doc.is_empty(),
        ValueRef::Array(array) => array.is_empty(),
        _ => return refuse(10065, "invalid parameter: expected an object ($rand)"),
    };
    if !is_empty {
        return refuse(3040501, "$rand does not currently accept arguments");
    }
    Ok(Node::custom(Rand))
}

impl Custom for Rand {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        Ok(env.context.random().into())
    }

    fn children<'s>(&'s self, _visit: &mut dyn FnMut(&'s Node)) {}
}
