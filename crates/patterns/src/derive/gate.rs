//! Two transactions that must not happen side by side although they write different documents: one adds a document of the
//! source, the other the document it belongs to, and neither sees the other's. Both pass the same gate, which only one of
//! two at the same time can.

use espalier_store::{Namespace, Transaction};
use espalier_value::{DocBuf, Result, ValueRef};

use super::Key;
use crate::stored;

/// Where gates are; nothing stays there.
fn gates(ns: &Namespace) -> Namespace {
    Namespace::new(ns.db(), "system.patterns")
}

/// Makes the place, so that passing never has to.
pub fn prepare(tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
    let gates = gates(ns);
    match tx.collection(&gates)? {
        Some(_) => Ok(()),
        None => tx.create(&gates, &Default::default()),
    }
}

/// A conflict for one of two transactions that pass with the same key at the same time.
pub fn pass(tx: &mut dyn Transaction, ns: &Namespace, key: &Key) -> Result<()> {
    let gates = gates(ns);
    let mut id = DocBuf::new();
    id.append("of", ns.collection()).append("key", &key.to_array());
    let mut doc = DocBuf::new();
    doc.append("_id", &id);
    // What was written and is gone again still counts as written.
    stored::insert(tx, &gates, &[doc.as_raw()])?;
    stored::remove(tx, &gates, ValueRef::Document(id.as_raw()))
}
