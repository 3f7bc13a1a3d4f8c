//! `$setDifference`: The elements of the first array that the second does not hold, each once.

use super::super::prelude::*;

pub(super) static SET_DIFFERENCE: Operator = Operator {
    name: "$setDifference",
    args: Args::Exactly(2),
    eval: Eval::Collated(set_difference),
    doc: "The elements of the first array that the second does not hold, each once.",
};

use super::members::members;

fn set_difference<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    if args.iter().any(Value::is_nullish) {
        return Ok(Value::NULL);
    }
    let Some(ValueRef::Array(left)) = args[0].as_ref() else {
        let found = type_name(&args[0]);
        return refuse(
            17048,
            format!("both operands of $setDifference must be arrays. First argument is of type: {found}"),
        );
    };
    let Some(ValueRef::Array(right)) = args[1].as_ref() else {
        let found = type_name(&args[1]);
        return refuse(
            17049,
            format!("both operands of $setDifference must be arrays. Second argument is of type: {found}"),
        );
    };
    let mut seen = members(right, collator);
    let mut out = ArrayBuf::new();
    for value in left.iter() {
        // The order of the first array is kept; what was given out once counts as held.
        if seen.insert(collator.key(value), value).is_none() {
            out.push(value);
        }
    }
    Ok(Value::array(out))
}
