//! `$in`: True if an array holds a value.

use super::super::prelude::*;

pub(super) static IN: Operator = Operator {
    name: "$in",
    args: Args::Exactly(2),
    eval: Eval::Collated(contains),
    doc: "True if an array holds a value.",
};

fn contains<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    let Some(ValueRef::Array(array)) = args[1].as_ref() else {
        return refuse(40081, format!("$in requires an array as a second argument, found: {}", type_name(&args[1])));
    };
    let Some(wanted) = args[0].as_ref() else { return Ok(false.into()) };
    Ok(array.iter().any(|value| collator.equal(value, wanted)).into())
}
