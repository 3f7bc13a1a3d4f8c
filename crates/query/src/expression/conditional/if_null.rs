//! `$ifNull`: The first that is neither null nor missing, else the last.

use espalier_value::Path;

use super::super::prelude::*;

pub(super) static IF_NULL: Operator = Operator {
    name: "$ifNull",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The first that is neither null nor missing, else the last.",
};

#[derive(Debug)]
struct IfNull(Vec<Node>);

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut nodes = list(argument, scope)?;
    if nodes.len() < 2 {
        let message = format!("$ifNull needs at least two arguments, had: {}", nodes.len());
        return Err(Error::new(Code(1257300), message));
    }
    // Behind a constant that is not null nothing counts, and a null constant counts only at the end.
    let is = |node: &Node, null: bool| matches!(node, Node::Literal(value) if value.is_nullish() == null);
    if let Some(at) = nodes.iter().position(|node| is(node, false)) {
        nodes.truncate(at + 1);
    }
    let last = nodes.pop();
    nodes.retain(|node| !is(node, true));
    match last {
        Some(last) if nodes.is_empty() => Ok(last),
        last => {
            nodes.extend(last);
            Ok(Node::custom(IfNull(nodes)))
        }
    }
}

impl Custom for IfNull {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let mut value = Value::Missing;
        for node in &self.0 {
            value = node.eval(env)?;
            if !value.is_nullish() {
                break;
            }
        }
        Ok(value)
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        self.0.iter().for_each(visit);
    }

    fn field_or_null(&self) -> Option<&Path> {
        match &self.0[..] {
            [Node::Field(path), Node::Literal(value)] if matches!(value.as_ref(), Some(ValueRef::Null)) => Some(path),
            _ => None,
        }
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
