//! The values that `distinct` takes from documents.

use std::collections::HashSet;

use espalier_value::path::Part;
use espalier_value::{Code, Error, Path, Result, Value, ValueRef, key};

use crate::stream::Stream;

/// What all values together may measure.
const BYTES_MAX: usize = 16 << 20;

/// The distinct values at a path, in the order of their first appearance.
pub fn collect(docs: &mut dyn Stream, path: &Path) -> Result<Vec<Value<'static>>> {
    let mut seen = HashSet::new();
    let mut values = Vec::new();
    let mut bytes = 0usize;
    while docs.advance()? {
        each_value(ValueRef::Document(docs.doc()), path.parts(), &mut |value| {
            if seen.insert(key::of(value)) {
                let value = Value::own(value);
                bytes += value.heap_bytes() + 16;
                values.push(value);
            }
        });
        if bytes > BYTES_MAX {
            return Err(Error::new(Code(17217), "distinct too big, 16mb cap"));
        }
    }
    Ok(values)
}

/// An array gives its elements.
fn each_value<'a>(value: ValueRef<'a>, parts: &[Part], found: &mut dyn FnMut(ValueRef<'a>)) {
    match (value, parts) {
        (ValueRef::Array(array), []) => array.iter().for_each(found),
        (value, []) => found(value),
        (ValueRef::Document(doc), [part, rest @ ..]) => {
            if let Some(inner) = doc.get(part.name()) {
                each_value(inner, rest, found);
            }
        }
        (ValueRef::Array(array), [part, rest @ ..]) => {
            if let Some(inner) = part.index().and_then(|i| array.get(i)) {
                each_value(inner, rest, found);
            }
            for element in array.iter().filter(|e| e.as_doc().is_some()) {
                each_value(element, parts, found);
            }
        }
        _ => {}
    }
}
