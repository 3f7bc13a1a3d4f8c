//! `$toInt`, `$toString` and their like: `$convert` with nothing but an input.

use super::super::prelude::*;

#[derive(Debug)]
struct To {
    ty: Type,
    input: Node,
}

pub(super) fn parse(operator: &str, ty: Type, argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut nodes = list(argument, scope)?;
    match (nodes.pop(), nodes.len()) {
        (Some(input), 0) => Ok(Node::custom(To { ty, input })),
        (last, rest) => {
            let count = rest + usize::from(last.is_some());
            refuse(50723, format!("{operator} requires a single argument, got {count}"))
        }
    }
}

impl Custom for To {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let input = self.input.eval(env)?;
        if input.is_nullish() { Ok(Value::NULL) } else { super::conversion::convert(&input, self.ty) }
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        visit(&self.input);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
