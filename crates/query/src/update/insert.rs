//! Inserted documents: `_id` is added if missing and comes first, empty timestamps are filled in, and what cannot be
//! stored is refused.

use espalier_value::{DocBuf, Error, RawDoc, Result, ValueRef};

use super::replacement::fill_timestamps;
use super::{id, nesting};

/// A document ready to be stored: as it came, or rewritten.
#[derive(Debug)]
pub enum Prepared<'a> {
    AsIs(RawDoc<'a>),
    Rewritten(DocBuf),
}

impl Prepared<'_> {
    pub fn as_raw(&self) -> RawDoc<'_> {
        match self {
            Prepared::AsIs(doc) => *doc,
            Prepared::Rewritten(doc) => doc.as_raw(),
        }
    }
}

/// Checks a document that a client wants to insert. `new_id` gives an ObjectId if it has no `_id`; `time` is what a
/// top-level `Timestamp(0, 0)` becomes. A document that has its `_id` first is not copied.
pub fn prepare_insert(doc: RawDoc<'_>, new_id: impl FnOnce() -> [u8; 12], time: u64) -> Result<Prepared<'_>> {
    let (mut own_id, mut id_is_first, mut empty_timestamp, mut nested) = (None, false, false, false);
    for (i, elem) in doc.iter().enumerate() {
        if elem.name_bytes() == b"_id" {
            if own_id.is_some() {
                return Err(Error::bad_value("can't have multiple _id fields in one document"));
            }
            id::check(elem.value())?;
            own_id = Some(elem);
            id_is_first = i == 0;
        } else {
            empty_timestamp |= matches!(elem.value(), ValueRef::Timestamp(0));
        }
        nested |= matches!(elem.type_byte(), 3 | 4);
    }
    if nested && nesting::depth(ValueRef::Document(doc)) > nesting::STORED_DEPTH_MAX {
        return Err(nesting::too_deep_to_insert());
    }
    if id_is_first && !empty_timestamp {
        return Ok(Prepared::AsIs(doc));
    }
    let mut prepared = DocBuf::with_capacity(doc.as_bytes().len() + 17);
    match own_id {
        Some(elem) => prepared.append_elem(elem),
        None => prepared.append("_id", ValueRef::ObjectId(new_id())),
    };
    for elem in doc.iter().filter(|e| e.name_bytes() != b"_id") {
        prepared.append_elem(elem);
    }
    if empty_timestamp {
        prepared = fill_timestamps(prepared.as_raw(), time);
    }
    Ok(Prepared::Rewritten(prepared))
}
