//! `$setEquals`: True if all arrays hold the same elements, whatever their order and number.

use super::super::prelude::*;

pub(super) static SET_EQUALS: Operator = Operator {
    name: "$setEquals",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "True if all arrays hold the same elements, whatever their order and number.",
};

use std::sync::Arc;

use super::members::members;

#[derive(Debug)]
struct SetEquals {
    sets: Vec<Node>,
    collation: Option<Arc<Collation>>,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut nodes = Vec::new();
    let mut take = |value: ValueRef<'_>| {
        let node = operand(value, scope)?;
        // A constant that is no array is refused before those behind it are looked at.
        if let Node::Literal(value) = &node
            && !matches!(value.as_ref(), Some(ValueRef::Array(_)))
        {
            let found = type_name(value);
            let message = format!("All operands of $setEquals must be arrays. One argument is of type: {found}");
            scope.defer(Error::new(Code(5887502), message));
        }
        nodes.push(node);
        Ok::<_, Error>(())
    };
    match argument {
        ValueRef::Array(array) => array.iter().try_for_each(take)?,
        other => take(other)?,
    }
    if nodes.len() < 2 {
        return refuse(17045, format!("$setEquals needs at least two arguments had: {}", nodes.len()));
    }
    Ok(Node::custom(SetEquals { sets: nodes, collation: scope.collation().clone() }))
}

impl Custom for SetEquals {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let mut first: Option<Vec<Vec<u8>>> = None;
        let mut equal = true;
        for (at, node) in self.sets.iter().enumerate() {
            let value = node.eval(env)?;
            let Some(ValueRef::Array(array)) = value.as_ref() else {
                let found = type_name(&value);
                let message =
                    format!("All operands of $setEquals must be arrays. {}-th argument is of type: {found}", at + 1);
                return refuse(17044, message);
            };
            let keys: Vec<_> = members(array, Collator::of(&self.collation)).into_keys().collect();
            match &first {
                None => first = Some(keys),
                Some(first) => equal &= *first == keys,
            }
            if !equal {
                break;
            }
        }
        Ok(equal.into())
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        self.sets.iter().for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
