//! `$and`: True if all of them are; stops at the first that is not. True for none.

use super::super::prelude::*;

pub(super) static AND: Operator = Operator {
    name: "$and",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "True if all of them are; stops at the first that is not. True for none.",
};

#[derive(Debug)]
struct And(Vec<Node>);

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut nodes = list(argument, scope)?;
    if nodes.iter().any(|node| matches!(node, Node::Literal(value) if !truthy(value))) {
        return Ok(Node::Literal(false.into()));
    }
    nodes.retain(|node| !node.is_literal());
    Ok(Node::custom(And(nodes)))
}

impl Custom for And {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        for arg in &self.0 {
            if !truthy(&arg.eval(env)?) {
                return Ok(false.into());
            }
        }
        Ok(true.into())
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        self.0.iter().for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
