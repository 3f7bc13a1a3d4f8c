//! The rules for `_id`: what it may be, and where it stands.

use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

/// Refuses what cannot be an `_id`: arrays, regular expressions, undefined, and documents with `$` names in them.
pub(super) fn check(id: ValueRef<'_>) -> Result<()> {
    match id {
        ValueRef::Array(_) | ValueRef::Regex(..) | ValueRef::Undefined => {
            let message = format!("The '_id' value cannot be of type {}", id.ty().name());
            Err(Error::new(Code::InvalidIdField, message))
        }
        ValueRef::Document(doc) => no_dollars(doc),
        _ => Ok(()),
    }
}

fn no_dollars(doc: RawDoc<'_>) -> Result<()> {
    for elem in doc {
        let name = elem.name();
        // A DBRef may be an _id.
        if name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db") {
            let message = format!("_id fields may not contain '$'-prefixed fields: {name} is not valid for storage.");
            return Err(Error::new(Code::DollarPrefixedFieldName, message));
        }
        match elem.value() {
            ValueRef::Document(inner) => no_dollars(inner)?,
            ValueRef::Array(inner) => no_dollars(inner.as_doc())?,
            _ => {}
        }
    }
    Ok(())
}
