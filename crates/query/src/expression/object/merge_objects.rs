//! `$mergeObjects`: The fields of several documents in one; of two with one name the last counts.

use super::super::prelude::*;

pub(super) static MERGE_OBJECTS: Operator = Operator {
    name: "$mergeObjects",
    args: Args::Any,
    eval: Eval::Lazy(merge_objects),
    doc: "The fields of several documents in one; of two with one name the last counts.",
};

use crate::accumulator::merge_objects::merge;

fn merge_objects<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let mut out = DocBuf::new();
    for arg in args.iter() {
        let arg = arg?;
        match arg.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => {}
            // A single argument may be an array of documents.
            Some(ValueRef::Array(array)) if args.len() == 1 => {
                for value in array.iter() {
                    merge(&mut out, value)?;
                }
            }
            Some(value) => merge(&mut out, value)?,
        }
    }
    Ok(Value::document(out))
}
