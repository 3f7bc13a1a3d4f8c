//! `$ifNull`: The first that is neither null nor missing, else the last.

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
    let nodes = list(argument, scope)?;
    if nodes.len() < 2 {
        let message = format!("$ifNull needs at least two arguments, had: {}", nodes.len());
        return Err(Error::new(Code(1257300), message));
    }
    Ok(Node::custom(IfNull(nodes)))
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

    fn is_foldable(&self) -> bool {
        true
    }
}
