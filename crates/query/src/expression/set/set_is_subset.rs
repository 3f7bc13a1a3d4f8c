//! `$setIsSubset`: True if the second array holds every element of the first.

use super::super::prelude::*;

pub(super) static SET_IS_SUBSET: Operator = Operator {
    name: "$setIsSubset",
    args: Args::Exactly(2),
    eval: Eval::Collated(set_is_subset),
    doc: "True if the second array holds every element of the first.",
};

use super::members::members;

fn set_is_subset<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    let Some(ValueRef::Array(left)) = args[0].as_ref() else {
        let found = type_name(&args[0]);
        return refuse(
            17046,
            format!("both operands of $setIsSubset must be arrays. First argument is of type: {found}"),
        );
    };
    let Some(ValueRef::Array(right)) = args[1].as_ref() else {
        let found = type_name(&args[1]);
        return refuse(
            17042,
            format!("both operands of $setIsSubset must be arrays. Second argument is of type: {found}"),
        );
    };
    let right = members(right, collator);
    Ok(left.iter().all(|value| right.contains_key(&collator.key(value))).into())
}
