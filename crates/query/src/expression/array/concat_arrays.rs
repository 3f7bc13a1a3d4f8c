//! `$concatArrays`: The elements of several arrays in one.

use super::super::prelude::*;

pub(super) static CONCAT_ARRAYS: Operator = Operator {
    name: "$concatArrays",
    args: Args::Associative,
    eval: Eval::Lazy(concat_arrays),
    doc: "The elements of several arrays in one.",
};

fn concat_arrays<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let mut out = ArrayBuf::new();
    for arg in args.iter() {
        let arg = arg?;
        match arg.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::Array(array)) => array.iter().for_each(|value| {
                out.push(value);
            }),
            Some(other) => {
                return refuse(28664, format!("$concatArrays only supports arrays, not {}", other.ty().name()));
            }
        }
    }
    Ok(Value::array(out))
}
