//! Bringing the copies in many documents up to date: in the commit itself if they are not too many, else later.

use std::sync::Arc;

use espalier_store::{Find, Namespace, Update};
use espalier_value::Result;

use super::Reference;
use crate::bson::id_of;
use crate::derive::{Derivation, Key, Patch, marks};
use crate::roles::Roles;
use crate::stored;
use crate::write::Write;

/// After so many conflicts with those who write the same documents, only this many are written in the commit.
const ATTEMPTS: usize = 4;
const FEW: u64 = 16;

impl Reference {
    pub(super) fn fan_out(&self, write: &mut Write<'_>, ns: &Namespace, key: &Key, patch: &Patch) -> Result<()> {
        if patch.is_empty() {
            return Ok(());
        }
        let filter = self.link.own_filter(key)?;
        let most = if write.attempt < ATTEMPTS { self.in_commit } else { self.in_commit.min(FEW) };
        // Lists that have the value among others are counted along, so that the index alone can tell.
        let mut find = Find::new(self.link.near_filter(key)?, Arc::new(Default::default()));
        find.limit = Some(most + 1);
        if crate::read::count(write.tx, ns, &find)? > most {
            write.marked = true;
            return marks::put(write.tx, ns, self.kind(), key, write.context.now_ms);
        }
        let roles = Roles::of(write.tx, ns)?.unwrap_or_default();
        if roles.ends_with(patch) {
            // Nothing follows from it: one write for all.
            let all = Update { filter, multi: true, ..patch.update(&write.context)? };
            return write.aloud(|tx| tx.update(ns, &all)).map(drop);
        }
        let mut cursor = crate::read::find(write.tx, ns, &stored::query(filter))?;
        while cursor.advance()? {
            write.context.interrupt.check()?;
            if patch.differs(cursor.doc()) {
                let id = espalier_value::Value::own(id_of(cursor.doc()));
                write.patch(ns, id.or_null(), patch)?;
            }
        }
        Ok(())
    }
}
