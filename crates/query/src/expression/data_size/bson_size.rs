//! `$bsonSize`: The bytes of a document as BSON.

use super::super::prelude::*;

pub(super) static BSON_SIZE: Operator = Operator {
    name: "$bsonSize",
    args: Args::Exactly(1),
    eval: Eval::Strict(bson_size),
    doc: "The bytes of a document as BSON.",
};

fn bson_size<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(Value::NULL),
        Some(ValueRef::Document(doc)) => Ok((doc.as_bytes().len() as i32).into()),
        Some(other) => refuse(31393, format!("$bsonSize requires a document input, found: {}", other.ty().name())),
    }
}
