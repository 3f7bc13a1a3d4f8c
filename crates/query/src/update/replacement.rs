//! Replacement documents: everything but `_id` is taken from the new document. A replacement that already is the
//! document, `_id` and all, changes nothing.

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef, compare};

use super::{id, nesting, path, timestamp};
use crate::context::Context;

#[derive(Debug)]
pub(super) struct Replacement {
    doc: DocBuf,
    /// Whether a top-level field is the empty timestamp, which stands for the time of the write.
    empty_timestamps: bool,
    /// Written also if nothing changes.
    always: bool,
}

impl Replacement {
    pub fn parse(doc: RawDoc<'_>) -> Result<Replacement> {
        if let Some(elem) = doc.iter().find(|e| e.name_bytes().starts_with(b"$")) {
            return Err(path::dollar_prefixed(elem.name()));
        }
        nesting::check(nesting::depth(ValueRef::Document(doc)))?;
        let empty_timestamps = doc.iter().any(|e| matches!(e.value(), ValueRef::Timestamp(0)));
        Ok(Replacement { doc: DocBuf::from_raw(doc), empty_timestamps, always: false })
    }

    /// Takes the document as it is.
    pub fn stored(doc: DocBuf) -> Replacement {
        Replacement { doc, empty_timestamps: false, always: false }
    }

    /// Takes the document as it is, and counts as a change of it even if it is none.
    pub fn touched(doc: DocBuf) -> Replacement {
        Replacement { doc, empty_timestamps: false, always: true }
    }

    pub fn apply(&self, old: RawDoc<'_>, context: &Context) -> Result<Option<DocBuf>> {
        let new = self.doc.as_raw();
        if new.as_bytes() == old.as_bytes() && !self.empty_timestamps && !self.always {
            return Ok(None);
        }
        let mut updated = with_id(old, new)?;
        if self.empty_timestamps {
            updated = fill_timestamps(updated.as_raw(), timestamp(context));
        }
        Ok(Some(updated))
    }
}

/// `new` with `_id` first: its own if it has one, which must equal the old one, else the old one.
pub(super) fn with_id(old: RawDoc<'_>, new: RawDoc<'_>) -> Result<DocBuf> {
    let id = match (new.elem("_id"), old.elem("_id")) {
        (Some(after), Some(before)) if compare(after.value(), before.value()).is_ne() => {
            id::check(after.value())?;
            let altered = format!("_id: {}", after.value());
            let message = format!(
                "After applying the update, the (immutable) field '_id' was found to have been altered to {altered}"
            );
            return Err(Error::new(Code::ImmutableField, message));
        }
        (Some(after), before) => {
            if before.is_none() {
                check_new(after.value())?;
            }
            Some(after)
        }
        (None, before) => before,
    };
    let mut updated = DocBuf::with_capacity(new.as_bytes().len() + 24);
    if let Some(id) = id {
        updated.append_elem(id);
    }
    for elem in new.iter().filter(|e| e.name_bytes() != b"_id") {
        updated.append_elem(elem);
    }
    Ok(updated)
}

fn check_new(new_id: ValueRef<'_>) -> Result<()> {
    if matches!(new_id, ValueRef::Array(_)) {
        let message = "After applying the update to the document, the (immutable) field '_id' was found to be an array \
                       or array descendant.";
        return Err(Error::new(Code::NotSingleValueField, message));
    }
    id::check(new_id)
}

/// Top-level empty timestamps become `time`; an `_id` is left as it is.
pub(super) fn fill_timestamps(doc: RawDoc<'_>, time: u64) -> DocBuf {
    let mut filled = DocBuf::with_capacity(doc.as_bytes().len());
    for elem in doc {
        if matches!(elem.value(), ValueRef::Timestamp(0)) && elem.name_bytes() != b"_id" {
            filled.append(elem.name(), ValueRef::Timestamp(time));
        } else {
            filled.append_elem(elem);
        }
    }
    filled
}
