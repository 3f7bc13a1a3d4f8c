//! How deep values are nested, and MongoDB's limit for what may be stored (below the limit for what may be sent, so
//! that a stored document can still be wrapped in a reply).

use espalier_value::{Code, Error, Result, ValueRef};

/// Levels of documents and arrays in a stored document.
pub(super) const STORED_DEPTH_MAX: usize = 180;

/// Levels of documents and arrays: 0 for a scalar.
pub(super) fn depth(value: ValueRef<'_>) -> usize {
    let elems = match value {
        ValueRef::Document(doc) => doc.iter(),
        ValueRef::Array(array) => array.elems(),
        _ => return 0,
    };
    1 + elems.map(|e| if matches!(e.type_byte(), 3 | 4) { depth(e.value()) } else { 0 }).max().unwrap_or(0)
}

pub(super) fn check(levels: usize) -> Result<()> {
    if levels > STORED_DEPTH_MAX {
        let message = format!("Document exceeds maximum nesting depth of {STORED_DEPTH_MAX}");
        return Err(Error::new(Code::Overflow, message));
    }
    Ok(())
}

pub(super) fn too_deep_to_insert() -> Error {
    let message = format!("cannot insert document because it exceeds {STORED_DEPTH_MAX} levels of nesting");
    Error::new(Code::Overflow, message)
}
