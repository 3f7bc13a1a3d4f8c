//! `$anyElementTrue`: True if one element is neither false nor null nor zero.

use super::super::prelude::*;

pub(super) static ANY_ELEMENT_TRUE: Operator = Operator {
    name: "$anyElementTrue",
    args: Args::Exactly(1),
    eval: Eval::Strict(any_element_true),
    doc: "True if one element is neither false nor null nor zero.",
};

fn any_element_true<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        Some(ValueRef::Array(array)) => Ok(array.iter().any(truthy_ref).into()),
        _ => refuse(17041, format!("$anyElementTrue's argument must be an array, but is {}", type_name(&args[0]))),
    }
}
