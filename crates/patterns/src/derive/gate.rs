//! Two transactions that must not happen side by side although they write different documents: one adds a document of the
//! source, the other the document it belongs to, and neither sees the other's. Both pass the same gate, which only one of
//! two at the same time can.

use espalier_store::{Namespace, Transaction};
use espalier_value::{DocBuf, Result, ValueRef};

use super::Key;
use crate::stored;
use crate::write::Write;

/// How many can pass beside each other, more or less.
const LANES: i32 = 8;

/// Where gates are, of which nothing stays there, and marks of what is left to be done.
pub fn place(ns: &Namespace) -> Namespace {
    Namespace::new(ns.db(), "system.patterns")
}

/// Makes the place, so that passing never has to.
pub fn prepare(tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
    let place = place(ns);
    match tx.collection(&place)? {
        Some(_) => Ok(()),
        None => tx.create(&place, &Default::default()),
    }
}

/// A conflict for one of two transactions that pass with the same key at the same time.
pub fn pass(write: &mut Write<'_>, ns: &Namespace, key: &Key) -> Result<()> {
    lane(write, ns, key, 0)
}

/// Passes beside others who do the same, most of the time, and not beside one who passes alone.
pub fn pass_beside(write: &mut Write<'_>, ns: &Namespace, key: &Key) -> Result<()> {
    if (0..LANES).any(|lane| write.passed.contains(name(ns, key, lane).as_bytes())) {
        return Ok(());
    }
    let any = (write.context.random() * f64::from(LANES)) as i32 % LANES;
    lane(write, ns, key, any)
}

/// Passes when nobody else with the same key does.
pub fn pass_alone(write: &mut Write<'_>, ns: &Namespace, key: &Key) -> Result<()> {
    (0..LANES).try_for_each(|at| lane(write, ns, key, at))
}

fn name(ns: &Namespace, key: &Key, lane: i32) -> DocBuf {
    let mut id = DocBuf::new();
    id.append("gate", ns.collection()).append("lane", lane).append("key", &key.to_array());
    id
}

fn lane(write: &mut Write<'_>, ns: &Namespace, key: &Key, lane: i32) -> Result<()> {
    let id = name(ns, key, lane);
    if write.passed.contains(id.as_bytes()) {
        return Ok(());
    }
    let place = place(ns);
    let mut doc = DocBuf::new();
    doc.append("_id", &id);
    // What was written and is gone again still counts as written.
    stored::insert(write.tx, &place, &[doc.as_raw()])?;
    stored::remove(write.tx, &place, ValueRef::Document(id.as_raw()))?;
    write.passed.insert(id.into_bytes());
    Ok(())
}
