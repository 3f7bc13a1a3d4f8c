//! `$let`: Evaluates `in` with the variables of `vars` bound.

use smallvec::SmallVec;

use super::super::prelude::*;

pub(super) static LET: Operator = Operator {
    name: "$let",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "Evaluates `in` with the variables of `vars` bound.",
};

#[derive(Debug)]
struct Let {
    vars: Vec<Node>,
    body: Node,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let doc = object_argument("$let", argument, 16874)?;
    let (mut vars, mut body) = (None, None);
    for elem in doc {
        match elem.name() {
            "vars" => match elem.value() {
                ValueRef::Document(doc) => vars = Some(doc),
                _ => return refuse(10065, "invalid parameter: expected an object (vars)"),
            },
            "in" => body = Some(elem.value()),
            other => return refuse(16875, format!("Unrecognized parameter to $let: {other}")),
        }
    }
    let Some(vars) = vars else { return refuse(16876, "Missing 'vars' parameter to $let") };
    let Some(body) = body else { return refuse(16877, "Missing 'in' parameter to $let") };
    let mut inner = scope.clone();
    let mut nodes = Vec::new();
    for elem in vars {
        validate_name_to_define(elem.name())?;
        // A variable does not see those defined beside it.
        nodes.push(operand(elem.value(), scope)?);
        inner = inner.with(elem.name());
    }
    Ok(Node::custom(Let { vars: nodes, body: operand(body, &inner)? }))
}

impl Custom for Let {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let values: SmallVec<[Value<'a>; 4]> = self.vars.iter().map(|node| node.eval(env)).collect::<Result<_>>()?;
        if values.iter().any(|v| matches!(v, Value::Owned(_))) {
            let mut inner = env.nested();
            values.iter().for_each(|value| inner.push(value.as_ref()));
            return Ok(self.body.eval(&inner)?.into_owned());
        }
        // Everything bound is lent from the document, so the result may be too.
        let mut inner = env.nested();
        for value in &values {
            inner.push(if let Value::Ref(value) = value { Some(*value) } else { None });
        }
        self.body.eval(&inner)
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        self.vars.iter().chain([&self.body]).for_each(visit);
    }
}
