//! Comparing two documents the way MongoDB does after a pipeline update, down to when it gives up: a difference that
//! would take more bytes to tell than the document itself is a replacement.

use std::collections::BTreeSet;

use espalier_value::{RawArray, RawDoc, ValueRef};

use super::describe::{Change, Description, Diff, Told};

/// What MongoDB adds to a difference when it writes it down.
const METADATA_BYTES: usize = 15;
/// An empty document; a type and the end of a name.
const DOCUMENT_BYTES: usize = 5;
const ELEMENT_BYTES: usize = 2;
/// `u`, `i`, `d` as names of a document.
const SECTION_BYTES: usize = ELEMENT_BYTES + 1 + DOCUMENT_BYTES;

/// What a change stream tells of the way from one document to the other.
pub(super) fn description(before: RawDoc<'_>, after: RawDoc<'_>) -> Description {
    match document(before, after, METADATA_BYTES) {
        Some((diff, _)) => Description::Updated(diff.describe()),
        None => Description::Replaced,
    }
}

/// The difference and the bytes it takes; `None` if that is too much.
fn document<'d>(before: RawDoc<'d>, after: RawDoc<'d>, padding: usize) -> Option<(Diff<'d>, usize)> {
    let bytes_max = after.as_bytes().len();
    let mut diff = Diff::default();
    let mut bytes = padding + DOCUMENT_BYTES;
    let mut gone = BTreeSet::new();
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    while let (Some(was), Some(is)) = (old.peek().copied(), new.peek().copied()) {
        if was.name_bytes() != is.name_bytes() {
            gone.insert(was.name());
            old.next();
            continue;
        }
        if was.raw() != is.raw() {
            let name = is.name();
            match below(was.value(), is.value()) {
                Some((inner, size)) => {
                    bytes += ELEMENT_BYTES + 1 + name.len() + size;
                    diff.below.push((name, inner));
                }
                None => {
                    bytes += if diff.updated.is_empty() { SECTION_BYTES } else { 0 };
                    bytes += is.raw().len();
                    diff.updated.push(Told { name, elem: Some(is) });
                }
            }
        }
        old.next();
        new.next();
        if bytes > bytes_max {
            return None;
        }
    }
    gone.extend(old.map(|elem| elem.name()));
    for elem in new {
        // New, or at another place than before.
        gone.remove(elem.name());
        bytes += if diff.inserted.is_empty() { SECTION_BYTES } else { 0 };
        bytes += elem.raw().len();
        diff.inserted.push(Told { name: elem.name(), elem: Some(elem) });
        if bytes > bytes_max {
            return None;
        }
    }
    if !gone.is_empty() {
        bytes += SECTION_BYTES + gone.iter().map(|name| ELEMENT_BYTES + name.len() + 1).sum::<usize>();
    }
    diff.removed.extend(gone);
    (bytes < bytes_max).then_some((diff, bytes))
}

fn array<'d>(before: RawArray<'d>, after: RawArray<'d>) -> Option<(Diff<'d>, usize)> {
    let bytes_max = after.as_bytes().len();
    let mut diff = Diff::default();
    // `a: true` says that it is one.
    let mut bytes = DOCUMENT_BYTES + ELEMENT_BYTES + 1 + 1;
    let (mut old, mut new) = (before.elems(), after.elems());
    let mut index = 0;
    loop {
        let (was, is) = (old.next(), new.next());
        let Some(is) = is else {
            if was.is_some() {
                bytes += ELEMENT_BYTES + 1 + 4;
                diff.truncated = Some(index);
            }
            break;
        };
        let value = is.value_bytes();
        if was.is_none_or(|was| was.type_byte() != is.type_byte() || was.value_bytes() != value) {
            let name = ELEMENT_BYTES + 1 + is.name_bytes().len();
            match was.and_then(|was| below(was.value(), is.value())) {
                Some((inner, size)) => {
                    bytes += name + size;
                    diff.elements.push((index, Change::Below(inner)));
                }
                None => {
                    bytes += name + value.len();
                    diff.elements.push((index, Change::Set(Some(is))));
                }
            }
        }
        if bytes > bytes_max {
            return None;
        }
        index += 1;
    }
    (bytes < bytes_max).then_some((diff, bytes))
}

fn below<'d>(before: ValueRef<'d>, after: ValueRef<'d>) -> Option<(Diff<'d>, usize)> {
    match (before, after) {
        (ValueRef::Document(before), ValueRef::Document(after)) => document(before, after, 0),
        (ValueRef::Array(before), ValueRef::Array(after)) => array(before, after),
        _ => None,
    }
}
