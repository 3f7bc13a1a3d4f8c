//! `$arrayElemAt`: The element at an index, counted from the end if negative; missing if there is none.

use super::super::prelude::*;

pub(super) static ARRAY_ELEM_AT: Operator = Operator {
    name: "$arrayElemAt",
    args: Args::Exactly(2),
    eval: Eval::Strict(array_elem_at),
    doc: "The element at an index, counted from the end if negative; missing if there is none.",
};

fn array_elem_at<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    if args.iter().any(Value::is_nullish) {
        return Ok(Value::NULL);
    }
    if args[0].as_ref().and_then(ValueRef::as_array).is_none() {
        let found = type_name(&args[0]);
        return refuse(28689, format!("$arrayElemAt's first argument must be an array, but is {found}"));
    }
    let Some(index) = Number::of(args[1].or_null()) else {
        let found = type_name(&args[1]);
        return refuse(28690, format!("$arrayElemAt's second argument must be a numeric value, but is {found}"));
    };
    let Some(index) = index.as_exact_i64().and_then(|i| i32::try_from(i).ok()) else {
        let message = format!("$arrayElemAt's second argument must be representable as a 32-bit integer: {index:?}");
        return refuse(28691, message);
    };
    Ok(super::element(&args[0], index.into()))
}
