//! Reading the logical documents of any collection, patterned or not.

use espalier_store::{Cursor, Find, Namespace, Transaction};
use espalier_value::{DocBuf, Result};

use crate::roles::Roles;

/// All logical documents that match: also those that a plain find would not show because they are archived.
pub fn find(at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
    match Roles::of(at, ns)?.and_then(|roles| roles.layout.clone()) {
        Some(layout) => layout.find_all(at, ns, find),
        None => at.find(ns, find),
    }
}

/// The first of them.
pub fn first(at: &dyn Transaction, ns: &Namespace, what: &Find) -> Result<Option<DocBuf>> {
    let mut cursor = find(at, ns, &Find { limit: Some(1), ..what.clone() })?;
    Ok(if cursor.advance()? { Some(DocBuf::from_raw(cursor.doc())) } else { None })
}

pub fn count(at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
    match Roles::of(at, ns)?.and_then(|roles| roles.layout.clone()) {
        Some(layout) => layout.count(at, ns, find),
        None => at.count(ns, find),
    }
}
