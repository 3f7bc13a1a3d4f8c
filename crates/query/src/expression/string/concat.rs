//! `$concat`: Strings joined; null or missing anywhere gives null.

use super::super::prelude::*;

pub(super) static CONCAT: Operator = Operator {
    name: "$concat",
    args: Args::Associative,
    eval: Eval::Lazy(concat),
    doc: "Strings joined; null or missing anywhere gives null.",
};

fn concat<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let mut out = String::new();
    for arg in args.iter() {
        let arg = arg?;
        match arg.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::String(text)) => out.push_str(text),
            Some(other) => {
                return refuse(16702, format!("$concat only supports strings, not {}", other.ty().name()));
            }
        }
    }
    Ok(Value::string(out))
}
