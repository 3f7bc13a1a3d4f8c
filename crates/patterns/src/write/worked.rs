//! Work that a layout does of itself on a document, such as a flush of counters: derivations that read the collection follow
//! what is seen of it.

use std::sync::Arc;

use espalier_query::Context;
use espalier_store::{Change, Namespace, Transaction};
use espalier_value::{DocBuf, Result, Value};

use super::document::Write;
use super::find_one;
use crate::roles::Roles;

/// What came of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Worked {
    /// For how many documents there was something to do.
    pub done: u64,
    /// Something is left to be done after the commit.
    pub marked: bool,
}

/// Does the work on these documents, which says for how many there was something to do, and lets derivations follow.
pub(crate) fn worked(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    roles: &Roles,
    ids: &[Value<'static>],
    context: &Arc<Context>,
    work: impl FnOnce(&mut dyn Transaction) -> Result<u64>,
) -> Result<Worked> {
    if roles.watchers.is_empty() {
        return Ok(Worked { done: work(tx)?, marked: false });
    }
    let seen = |tx: &dyn Transaction| -> Result<Vec<Option<DocBuf>>> {
        ids.iter().map(|id| find_one(tx, roles.layout.as_ref(), ns, id.or_null(), context)).collect()
    };
    let before = seen(tx)?;
    let done = work(tx)?;
    if done == 0 {
        return Ok(Worked::default());
    }
    let bytes = |doc: &Option<DocBuf>| doc.as_ref().map(|doc| doc.as_bytes().to_vec());
    let both = before.into_iter().zip(seen(tx)?).filter(|(before, after)| bytes(before) != bytes(after));
    let changes: Vec<Change> = both.map(|(before, after)| Change { collection: ns.clone(), before, after }).collect();
    let mut write = Write::new(tx, context.clone());
    write.follow(ns, roles, &changes)?;
    Ok(Worked { done, marked: write.marked })
}
