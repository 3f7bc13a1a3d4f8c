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
    let mut nodes = list(argument, scope)?;
    if nodes.iter().any(|node| matches!(node, Node::Literal(value) if truthy(value))) {
        return Ok(Node::Literal(true.into()));
    }
    nodes.retain(|node| !node.is_literal());
    Ok(Node::custom(Or(nodes)))
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
