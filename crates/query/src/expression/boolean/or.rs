//! `$or`: True if one of them is; stops there. False for none.

use super::super::prelude::*;

pub(super) static OR: Operator = Operator {
    name: "$or",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "True if one of them is; stops there. False for none.",
};

#[derive(Debug)]
struct Or(Vec<Node>);

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    Ok(Node::custom(Or(list(argument, scope)?)))
}

impl Custom for Or {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        for arg in &self.0 {
            if truthy(&arg.eval(env)?) {
                return Ok(true.into());
            }
        }
        Ok(false.into())
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        self.0.iter().for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
