//! Bringing what the documents of a collection have in line with what derivations say they are to have.

use std::collections::HashSet;

use espalier_query::Context;
use espalier_store::{Namespace, Transaction};
use espalier_value::{Result, Value, ValueRef};

use super::Derivation;
use crate::bson::id_of;
use crate::layout::Checked;
use crate::stored::everything;
use crate::write::Write;

/// Compares every document with what it is to have.
pub(crate) fn check(
    derivation: &dyn Derivation,
    at: &dyn Transaction,
    ns: &Namespace,
    context: &Context,
    dirty: &HashSet<Vec<u8>>,
    checked: &mut Checked,
) -> Result<()> {
    let mut cursor = crate::read::find(at, ns, &everything())?;
    while cursor.advance()? {
        context.interrupt.check()?;
        let doc = cursor.doc();
        let expected = derivation.expected(at, ns, doc)?;
        let behind = || derivation.own_key(doc).is_some_and(|key| dirty.contains(&key.bytes));
        if expected.differs(doc) && (behind() || derivation.is_behind(at, ns, doc)?) {
            continue;
        }
        for (path, is, wanted) in expected.differences(doc) {
            let text = |value: Option<ValueRef<'_>>| value.map_or("missing".to_string(), |value| value.to_string());
            let message = format!(
                "pattern '{}': the document with _id {} has {path}: {}, but '{}' gives {}",
                derivation.kind(),
                id_of(doc),
                text(is),
                derivation.source(),
                text(wanted)
            );
            checked.violations.push((message, Value::own(id_of(doc))));
        }
    }
    Ok(())
}

/// Gives one document what it is to have; false if it has it.
pub(crate) fn fill_one(
    derivation: &dyn Derivation,
    write: &mut Write<'_>,
    ns: &Namespace,
    id: ValueRef<'_>,
) -> Result<bool> {
    let Some(doc) = write.get(ns, id)? else { return Ok(false) };
    let mut patch = derivation.expected(write.tx, ns, doc.as_raw())?;
    if let Some(time) = write.time.filter(|_| derivation.within().is_some()) {
        derivation.stamp(&mut patch, time);
    }
    if !patch.differs(doc.as_raw()) {
        return Ok(false);
    }
    write.patch(ns, id, &patch)
}
