//! `$zip`: Several arrays turned into one of their first elements, their second elements, ….

use super::super::prelude::*;

pub(super) static ZIP: Operator = Operator {
    name: "$zip",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "Several arrays turned into one of their first elements, their second elements, ….",
};

#[derive(Debug)]
struct Zip {
    inputs: Vec<Node>,
    defaults: Vec<Node>,
    longest: bool,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let doc = object_argument("$zip", argument, 34460)?;
    let mut zip = Zip { inputs: Vec::new(), defaults: Vec::new(), longest: false };
    for elem in doc {
        match (elem.name(), elem.value()) {
            ("inputs", value @ ValueRef::Array(_)) => zip.inputs = list(value, scope)?,
            ("inputs", other) => {
                return refuse(34461, format!("inputs must be an array of expressions, found {}", other.ty().name()));
            }
            ("defaults", value @ ValueRef::Array(_)) => zip.defaults = list(value, scope)?,
            ("defaults", other) => {
                return refuse(34462, format!("defaults must be an array of expressions, found {}", other.ty().name()));
            }
            ("useLongestLength", ValueRef::Bool(longest)) => zip.longest = longest,
            ("useLongestLength", other) => {
                return refuse(34463, format!("useLongestLength must be a bool, found {}", other.ty().name()));
            }
            (other, _) => return refuse(34464, format!("$zip found an unknown argument: {other}")),
        }
    }
    if zip.inputs.is_empty() {
        return refuse(34465, "$zip requires at least one input array");
    }
    if !zip.defaults.is_empty() && !zip.longest {
        return refuse(34466, "cannot specify defaults unless useLongestLength is true");
    }
    if !zip.defaults.is_empty() && zip.defaults.len() != zip.inputs.len() {
        return refuse(34467, "defaults and inputs must have the same length");
    }
    Ok(Node::custom(zip))
}

impl Custom for Zip {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let mut values = Vec::with_capacity(self.inputs.len());
        for node in &self.inputs {
            let value = node.eval(env)?;
            match value.as_ref() {
                None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
                Some(ValueRef::Array(_)) => values.push(value),
                Some(other) => return refuse(34468, format!("$zip found a non-array expression in input: {other:?}")),
            }
        }
        let arrays: Vec<RawArray<'_>> = values.iter().filter_map(|value| value.as_ref()?.as_array()).collect();
        let defaults = self.defaults.iter().map(|node| node.eval(env)).collect::<Result<Vec<_>>>()?;
        let lengths = arrays.iter().map(|array| array.len());
        let length = if self.longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
        let mut iters: Vec<_> = arrays.iter().map(|array| array.iter()).collect();
        let mut out = ArrayBuf::new();
        for _ in 0..length {
            let mut row = ArrayBuf::new();
            for (at, iter) in iters.iter_mut().enumerate() {
                match (iter.next(), defaults.get(at)) {
                    (Some(value), _) => row.push(value),
                    (None, None) => row.push(ValueRef::Null),
                    (None, Some(Value::Missing)) => &mut row,
                    (None, Some(default)) => row.push_value(default),
                };
            }
            out.push(row.as_raw());
        }
        Ok(Value::array(out))
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        self.inputs.iter().chain(&self.defaults).for_each(visit);
    }
}
