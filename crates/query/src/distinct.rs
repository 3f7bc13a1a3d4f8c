//! The values that `distinct` takes from documents.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use espalier_value::path::Part;
use espalier_value::{Code, Collator, Error, Path, Result, Value, ValueRef, compare};

use crate::stream::Stream;

/// What all values together may measure.
const BYTES_MAX: usize = 16 << 20;

/// The distinct values at a path, in their order.
pub fn collect(docs: &mut dyn Stream, path: &Path, collator: Collator<'_>) -> Result<Vec<Value<'static>>> {
    let mut seen: BTreeMap<Vec<u8>, Value<'static>> = BTreeMap::new();
    let mut bytes = 0usize;
    while docs.advance()? {
        let mut take = |value: ValueRef<'_>| {
            if let Entry::Vacant(entry) = seen.entry(collator.key(value)) {
                let value = Value::own(value);
                bytes += value.heap_bytes() + 16;
                entry.insert(value);
            }
        };
        let doc = ValueRef::Document(docs.doc());
        if collator.is_simple() {
            each_value(doc, path.parts(), &mut take);
        } else {
            // Of strings that are equal the first is shown, and of those in one array the first in the order of bytes.
            let mut values = Vec::new();
            each_value(doc, path.parts(), &mut |value| values.push(value));
            values.sort_by(|a, b| compare(*a, *b));
            values.into_iter().for_each(take);
        }
        if bytes > BYTES_MAX {
            return Err(Error::new(Code(17217), "distinct too big, 16mb cap"));
        }
    }
    Ok(seen.into_values().collect())
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
