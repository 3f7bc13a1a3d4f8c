//! `$cond`: The second if the first is true, else the third; only one of them is evaluated.

use super::super::prelude::*;

pub(super) static COND: Operator = Operator {
    name: "$cond",
    args: Args::Exactly(3),
    eval: Eval::Special(parse),
    doc: "The second if the first is true, else the third; only one of them is evaluated.",
};

static NAMED: Named = Named {
    fields: &[Field::required("if", 17080), Field::required("then", 17081), Field::required("else", 17082)],
    not_object: 16020,
    unknown: 17083,
};

#[derive(Debug)]
struct Cond {
    test: Node,
    then: Node,
    otherwise: Node,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let nodes = match argument {
        ValueRef::Document(_) => NAMED.parse("$cond", argument, scope)?.into_iter().flatten().collect(),
        _ => list(argument, scope)?,
    };
    check_count("$cond", nodes.len(), 3, 3)?;
    let mut nodes = nodes.into_iter();
    let mut next = || nodes.next().unwrap_or(Node::NULL);
    let (test, then, otherwise) = (next(), next(), next());
    Ok(match test {
        Node::Literal(test) if truthy(&test) => then,
        Node::Literal(_) => otherwise,
        test => Node::custom(Cond { test, then, otherwise }),
    })
}

impl Custom for Cond {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        if truthy(&self.test.eval(env)?) { self.then.eval(env) } else { self.otherwise.eval(env) }
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.test, &self.then, &self.otherwise].into_iter().for_each(visit);
    }
}
