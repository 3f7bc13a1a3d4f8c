//! Kept places: where a field was in a document between two stages of a pipeline, so that a later stage can put it back
//! there.
//!
//! In MongoDB a field that a stage takes out of a document keeps its place until the document leaves the pipeline. A
//! kept place is an element of a type that BSON does not have, with a name and no value. No iteration shows it but
//! [`all`]; what goes to a client or to disk has passed [`strip`].

use crate::doc::{begin_nested, end_nested};
use crate::raw::{Elem, Elems, RawDoc, ValueRef};
use crate::types::Type;

/// Validation refuses this type byte, so that no client can send one.
pub(crate) const TYPE: u8 = 0x7E;

/// An element, or a place that is kept for one of that name.
pub enum Entry<'a> {
    Elem(Elem<'a>),
    /// The name, and the place as it is encoded.
    Place(&'a [u8], &'a [u8]),
}

/// The elements and kept places of a document, in order.
pub fn all(doc: RawDoc<'_>) -> impl Iterator<Item = Entry<'_>> {
    let bytes = doc.as_bytes();
    let mut rest = bytes.get(4..bytes.len() - 1).unwrap_or_default();
    std::iter::from_fn(move || {
        if *rest.first()? == TYPE {
            let name_len = rest[1..].iter().position(|&b| b == 0)?;
            let (place, after) = rest.split_at(name_len + 2);
            rest = after;
            return Some(Entry::Place(&place[1..=name_len], place));
        }
        let mut elems = Elems::new(rest);
        let elem = elems.next()?;
        rest = elems.rest();
        Some(Entry::Elem(elem))
    })
}

/// Keeps a place for a field of this name.
pub fn push(out: &mut Vec<u8>, name: &[u8]) {
    out.push(TYPE);
    out.extend_from_slice(name);
    out.push(0);
}

/// Appends the elements of a document without the places kept in it, at any depth.
pub fn strip(doc: RawDoc<'_>, out: &mut Vec<u8>) {
    for elem in doc {
        let (ty, inner) = match elem.value() {
            ValueRef::Document(inner) => (Type::Document, inner),
            ValueRef::Array(inner) => (Type::Array, inner.as_doc()),
            _ => {
                out.extend_from_slice(elem.raw());
                continue;
            }
        };
        let start = begin_nested(out, ty, elem.name_bytes());
        strip(inner, out);
        end_nested(out, start);
    }
}

/// False only if no place is kept in the document.
pub fn may_hold(doc: RawDoc<'_>) -> bool {
    doc.as_bytes().contains(&TYPE)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::DocBuf;

    #[test]
    fn a_kept_place_is_seen_by_nobody_and_refused_at_the_rim() {
        let mut doc = DocBuf::new();
        doc.append("a", 1);
        doc.append_with(|out| {
            push(out, b"b");
            let start = begin_nested(out, Type::Document, b"c");
            push(out, b"d");
            end_nested(out, start);
        });
        doc.append("e", 2);
        let raw = doc.as_raw();
        let names: Vec<&str> = raw.iter().map(|e| e.name()).collect();
        assert_eq!(names, ["a", "c", "e"]);
        assert!(raw.get("b").is_none());
        assert!(raw.get_doc("c").unwrap().is_empty());
        assert!(may_hold(raw));
        assert!(crate::validate(raw.as_bytes()).is_err());
        let mut clean = DocBuf::new();
        clean.append_with(|out| strip(raw, out));
        assert!(!may_hold(clean.as_raw()));
        assert!(crate::validate(clean.as_raw().as_bytes()).is_ok());
        let places = all(raw).filter(|e| matches!(e, Entry::Place(b"b", _))).count();
        assert_eq!((all(raw).count(), places), (4, 1));
    }
}
