//! Reading and replacing a value inside a document along a path of names.

use espalier_value::path::Part;
use espalier_value::{DocBuf, Elem, RawArray, RawDoc, ValueRef};

/// The element at a path that leads through documents only.
pub fn elem_at<'a>(doc: RawDoc<'a>, parts: &[Part]) -> Option<Elem<'a>> {
    let (first, rest) = parts.split_first()?;
    let elem = doc.elem(first.name())?;
    match (rest, elem.value()) {
        ([], _) => Some(elem),
        (rest, ValueRef::Document(inner)) => elem_at(inner, rest),
        _ => None,
    }
}

pub fn value_at<'a>(doc: RawDoc<'a>, parts: &[Part]) -> Option<ValueRef<'a>> {
    elem_at(doc, parts).map(Elem::value)
}

pub fn array_at<'a>(doc: RawDoc<'a>, parts: &[Part]) -> Option<RawArray<'a>> {
    match value_at(doc, parts) {
        Some(ValueRef::Array(array)) => Some(array),
        _ => None,
    }
}

/// The document with another value at a path; where the path leads to nothing, it is made at the end.
pub fn with_value(doc: RawDoc<'_>, parts: &[Part], value: ValueRef<'_>) -> DocBuf {
    with_values(doc, parts, value, &[])
}

/// The document with other values of fields at its top, those that it does not have yet at the end.
pub fn with_fields(doc: RawDoc<'_>, fields: &[(&str, ValueRef<'_>)]) -> DocBuf {
    with_values(doc, &[], ValueRef::Null, fields)
}

/// Both at once. No field's name is that which the path begins with.
pub fn with_values(doc: RawDoc<'_>, parts: &[Part], value: ValueRef<'_>, fields: &[(&str, ValueRef<'_>)]) -> DocBuf {
    let path = parts.split_first();
    let mut out = DocBuf::with_capacity(doc.as_bytes().len() + value_len(value) + 64);
    let mut placed = path.is_none();
    let mut missing: Vec<&(&str, ValueRef<'_>)> = fields.iter().collect();
    for elem in doc {
        if let Some((first, rest)) = path.filter(|(first, _)| !placed && elem.name() == first.name()) {
            placed = true;
            match (rest, elem.value()) {
                ([], _) => out.append(first.name(), value),
                (rest, ValueRef::Document(inner)) => out.append(first.name(), &with_value(inner, rest, value)),
                // Not a place where the path can go on; whoever asks has looked.
                _ => out.append_elem(elem),
            };
        } else if let Some(at) = missing.iter().position(|(name, _)| elem.name() == *name) {
            let (name, value) = missing.remove(at);
            out.append(name, *value);
        } else {
            out.append_elem(elem);
        }
    }
    if let Some((first, rest)) = path.filter(|_| !placed) {
        match rest {
            [] => out.append(first.name(), value),
            rest => out.append(first.name(), &with_value(RawDoc::EMPTY, rest, value)),
        };
    }
    for (name, value) in missing {
        out.append(name, *value);
    }
    out
}

/// The bytes of a value that may be long.
fn value_len(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Array(array) => array.as_bytes().len(),
        ValueRef::Document(doc) => doc.as_bytes().len(),
        _ => 0,
    }
}

/// The document without the fields of these names at its top.
pub fn without(doc: RawDoc<'_>, names: &[&str]) -> DocBuf {
    let mut out = DocBuf::with_capacity(doc.as_bytes().len());
    for elem in doc {
        if !names.contains(&elem.name()) {
            out.append_elem(elem);
        }
    }
    out
}

/// The document's `_id`; everything stored has one.
pub fn id_of(doc: RawDoc<'_>) -> ValueRef<'_> {
    doc.get("_id").unwrap_or(ValueRef::Null)
}

/// A whole number, whatever its type.
pub fn whole(value: Option<ValueRef<'_>>) -> Option<i64> {
    value.and_then(espalier_value::number::Number::of).and_then(espalier_value::number::Number::as_exact_i64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use espalier_value::{Path, doc};

    use super::*;

    #[test]
    fn a_value_is_replaced_in_place_or_made() {
        let inner = doc! { "x": 1, "y": 2 };
        let doc = doc! { "_id": 1, "a": &inner, "z": 3 };
        let replaced = with_value(doc.as_raw(), Path::new("a.x").parts(), ValueRef::Int32(9));
        assert_eq!(replaced, doc! { "_id": 1, "a": &doc! { "x": 9, "y": 2 }, "z": 3 });
        let made = with_value(doc.as_raw(), Path::new("b.c").parts(), ValueRef::Int32(9));
        assert_eq!(value_at(made.as_raw(), Path::new("b.c").parts()).and_then(|v| whole(Some(v))), Some(9));
    }
}
