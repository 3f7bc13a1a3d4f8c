//! Mending documents that are not as their patterns say.

use std::sync::Arc;

use espalier_query::Context;
use espalier_store::{Begin, Mode, Namespace};
use espalier_value::{Result, ValueRef};

use crate::derive::{self, Derivation};
use crate::patterned::Shared;
use crate::roles::Roles;
use crate::txn::PatternedTxn;
use crate::write::{Write, conflicted, layout_to_write};

/// Gives one document what all derivations on its collection say.
pub(crate) fn fill(shared: &Shared, ns: &Namespace, id: ValueRef<'_>, context: &Arc<Context>) -> Result<()> {
    write(shared, ns, id, context, |write, roles| {
        roles.derived.iter().try_for_each(|derivation| derive::fill_one(&**derivation, write, ns, id).map(drop))
    })
}

/// Gives one document what one of them says.
pub(crate) fn follow(
    shared: &Shared,
    ns: &Namespace,
    id: ValueRef<'_>,
    derivation: &dyn Derivation,
    context: &Arc<Context>,
) -> Result<()> {
    write(shared, ns, id, context, |write, _| derive::fill_one(derivation, write, ns, id).map(drop))
}

fn write(
    shared: &Shared,
    ns: &Namespace,
    id: ValueRef<'_>,
    context: &Arc<Context>,
    work: impl Fn(&mut Write<'_>, &Roles) -> Result<()>,
) -> Result<()> {
    let _turn = shared.locks.lock(ns, id, context)?;
    loop {
        context.interrupt.check()?;
        let begin = Begin { mode: Mode::Transaction, want_changes: false, raw: true, context: context.clone() };
        let (mut tx, time) = shared.below.begin_at(begin, None)?;
        tx.set_silent(true);
        let Some(roles) = Roles::of(&*tx, ns)? else { return Ok(()) };
        let mut write = Write::new(&mut *tx, context.clone());
        write.time = Some(time);
        match work(&mut write, &roles).and_then(|()| tx.commit()) {
            Err(error) if conflicted(&error) => std::thread::yield_now(),
            done => return done.map(drop),
        }
    }
}

impl PatternedTxn {
    /// Brings what is stored for one logical document in line with the patterns.
    pub(crate) fn repair_one(&mut self, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        let (shared, context) = (self.shared.clone(), self.begin.context.clone());
        let turn = shared.locks.lock(ns, id, &context)?;
        self.atomically(ns, &context, Vec::new(), |write| match layout_to_write(write.tx, ns)? {
            Some((layout, _)) => layout.repair(write.tx, ns, id),
            None => Ok(()),
        })?;
        drop(turn);
        fill(&shared, ns, id, &context)
    }
}
