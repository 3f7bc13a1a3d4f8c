//! `$switch`: The result of the first branch whose case is true, else the default.

use super::super::prelude::*;

pub(super) static SWITCH: Operator = Operator {
    name: "$switch",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The result of the first branch whose case is true, else the default.",
};

#[derive(Debug)]
struct Switch {
    branches: Vec<(Node, Node)>,
    default: Option<Node>,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let doc = object_argument("$switch", argument, 40060)?;
    let mut switch = Switch { branches: Vec::new(), default: None };
    // The default is evaluated early before the branches are.
    let after = scope.apart();
    for elem in doc {
        match elem.name() {
            "branches" => {
                let Some(branches) = elem.value().as_array() else {
                    let found = elem.ty().name();
                    return refuse(40061, format!("$switch expected an array for 'branches', found: {found}"));
                };
                switch.branches = branches.iter().map(|b| branch(b, &after)).collect::<Result<_>>()?;
            }
            "default" => switch.default = Some(operand(elem.value(), scope)?),
            other => return refuse(40067, format!("$switch found an unknown argument: {other}")),
        }
    }
    if let Err(error) = after.settle() {
        scope.defer(error);
    }
    if switch.branches.is_empty() {
        return refuse(40068, "$switch requires at least one branch");
    }
    switch.branches.retain(|(case, _)| !matches!(case, Node::Literal(value) if !truthy(value)));
    if switch.branches.is_empty() {
        let message = "Cannot execute a switch statement where all the cases evaluate to false without a default";
        if let Some(default) = switch.default {
            return Ok(default);
        }
        scope.defer(Error::new(Code(40069), message));
    }
    if matches!(switch.branches.first(), Some((Node::Literal(_), _))) {
        // The first case that is left is always true.
        return Ok(switch.branches.swap_remove(0).1);
    }
    Ok(Node::custom(switch))
}

fn branch(value: ValueRef<'_>, scope: &Scope) -> Result<(Node, Node)> {
    let Some(doc) = value.as_doc() else {
        let message = format!("$switch expected each branch to be an object, found: {}", value.ty().name());
        return refuse(40062, message);
    };
    let (mut case, mut then) = (None, None);
    for elem in doc {
        match elem.name() {
            "case" => case = Some(operand(elem.value(), scope)?),
            "then" => then = Some(elem.value()),
            other => return refuse(40063, format!("$switch found an unknown argument to a branch: {other}")),
        }
    }
    let Some(case) = case else { return refuse(40064, "$switch requires each branch have a 'case' expression") };
    let Some(then) = then else { return refuse(40065, "$switch requires each branch have a 'then' expression.") };
    // What can never be chosen is not evaluated early either.
    let never = matches!(&case, Node::Literal(value) if !truthy(value));
    let then = operand(then, &if never { scope.without_early() } else { scope.clone() })?;
    Ok((case, then))
}

impl Custom for Switch {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        for (case, then) in &self.branches {
            if truthy(&case.eval(env)?) {
                return then.eval(env);
            }
        }
        match &self.default {
            Some(default) => default.eval(env),
            None => {
                refuse(40066, "$switch could not find a matching branch for an input, and no default was specified.")
            }
        }
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        self.branches.iter().flat_map(|(case, then)| [case, then]).chain(&self.default).for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
