//! The indexes of a collection that a layout keeps beside another: each serves one or several of that one, since not every
//! field of a key is there.

use espalier_store::{IndexSpec, Namespace, Transaction};
use espalier_value::Result;

/// Makes the indexes, but for those that would be one that is there under another name.
pub fn create_indexes(tx: &mut dyn Transaction, beside: &Namespace, specs: Vec<IndexSpec>) -> Result<()> {
    let mut known: Vec<IndexSpec> = tx.indexes(beside)?.into_iter().map(|index| index.spec).collect();
    let mut missing = Vec::new();
    for spec in specs {
        if !known.iter().any(|other| other.name != spec.name && is_same(other, &spec)) {
            known.push(spec.clone());
            missing.push(spec);
        }
    }
    if missing.is_empty() { Ok(()) } else { tx.create_indexes(beside, &missing).map(drop) }
}

/// Drops the index with a name, if there is one; `left` are those that are still needed, some of which it may have served.
pub fn drop_index(tx: &mut dyn Transaction, beside: &Namespace, name: &str, left: Vec<IndexSpec>) -> Result<()> {
    if tx.indexes(beside)?.iter().any(|index| index.spec.name == name) {
        tx.drop_index(beside, name)?;
    }
    create_indexes(tx, beside, left)
}

fn is_same(a: &IndexSpec, b: &IndexSpec) -> bool {
    a.key().as_bytes() == b.key().as_bytes()
}
