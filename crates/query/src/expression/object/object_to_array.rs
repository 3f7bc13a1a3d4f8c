//! `$objectToArray`: The fields of a document as an array of {k, v}.

use super::super::prelude::*;

pub(super) static OBJECT_TO_ARRAY: Operator = Operator {
    name: "$objectToArray",
    args: Args::Exactly(1),
    eval: Eval::Strict(object_to_array),
    doc: "The fields of a document as an array of {k, v}.",
};

fn object_to_array<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let doc = match args[0].as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
        Some(ValueRef::Document(doc)) => doc,
        Some(other) => {
            let found = other.ty().name();
            return refuse(40390, format!("$objectToArray requires a document input, found: {found}"));
        }
    };
    let mut out = ArrayBuf::new();
    for elem in doc {
        out.push_doc(|pair| {
            pair.append("k", elem.name()).append("v", elem.value());
        });
    }
    Ok(Value::array(out))
}
