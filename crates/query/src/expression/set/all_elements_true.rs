//! `$allElementsTrue`: True if no element is false, null or zero.

use super::super::prelude::*;

pub(super) static ALL_ELEMENTS_TRUE: Operator = Operator {
    name: "$allElementsTrue",
    args: Args::Exactly(1),
    eval: Eval::Strict(all_elements_true),
    doc: "True if no element is false, null or zero.",
};

fn all_elements_true<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        Some(ValueRef::Array(array)) => Ok(array.iter().all(truthy_ref).into()),
        _ => refuse(17040, format!("$allElementsTrue's argument must be an array, but is {}", type_name(&args[0]))),
    }
}
