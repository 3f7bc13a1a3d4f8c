//! What a transaction has claimed, so that a conflict is known at the write and not only at the commit.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use espalier_kv::Snapshot;
use espalier_query::Interrupt;
use espalier_store::Namespace;
use espalier_value::Result;

use crate::catalog::Collection;
use crate::core::Core;
use crate::error::{kv, write_conflict};
use crate::layout::{self, RecordId};
use crate::locks::{Claim, Place};

/// How writers of one key get along.
#[derive(Default)]
pub enum Gate {
    /// Nobody else can be writing.
    #[default]
    Open,
    /// Outside a transaction: wait for transactions that have claimed a key.
    Plain { core: Arc<Core>, interrupt: Interrupt },
    /// In a transaction: claim it.
    Claims(Claims),
}

/// The places a transaction holds; given up when dropped.
pub struct Claims {
    core: Arc<Core>,
    owner: u64,
    held: Vec<Place>,
}

impl Claims {
    pub fn new(core: Arc<Core>) -> Claims {
        let owner = core.take_owner();
        Claims { core, owner, held: Vec::new() }
    }

    /// Claims a record, if nobody has written it since the transaction's snapshot.
    pub fn record(&mut self, at: &Snapshot, collection: &Collection, record: RecordId) -> Result<()> {
        self.claim((collection.id, record), &collection.record_key(record), at)
    }

    /// Claims a name for a collection that is not there.
    pub fn name(&mut self, ns: &Namespace) -> Result<()> {
        self.take(name_place(ns)).map(drop)
    }

    fn claim(&mut self, place: Place, key: &[u8], at: &Snapshot) -> Result<()> {
        if self.take(place)? && self.core.kv.is_changed(key, at).map_err(kv)? {
            return Err(write_conflict());
        }
        Ok(())
    }

    /// False if it had it already.
    fn take(&mut self, place: Place) -> Result<bool> {
        match self.core.locks.claim(place, self.owner) {
            Claim::Taken => {
                self.held.push(place);
                Ok(true)
            }
            Claim::Own => Ok(false),
            Claim::Refused => Err(write_conflict()),
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.held.drain(..).for_each(|place| self.core.locks.release(place));
    }
}

impl Gate {
    /// Before an entry of a unique index is looked at: outside a transaction, waits for one that has claimed its key.
    pub fn wait(&self, index: u64, key: &[u8]) -> Result<()> {
        match self {
            // What was waited for is newer than the view: the commit will conflict and be done again.
            Gate::Plain { core, interrupt } if core.locks.has_claims() => {
                core.locks.wait_unclaimed(key_place(index, key), interrupt).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Before it is added or removed: claims its key for the transaction.
    pub fn claim(&mut self, at: &Snapshot, index: u64, key: &[u8]) -> Result<()> {
        match self {
            Gate::Claims(claims) => claims.claim(key_place(index, key), key, at),
            Gate::Open | Gate::Plain { .. } => Ok(()),
        }
    }
}

/// Two keys with one hash only make two writers conflict, or wait, that need not.
fn key_place(tree: u64, key: &[u8]) -> Place {
    (tree, hash(key))
}

pub fn name_place(ns: &Namespace) -> Place {
    (layout::CATALOG, hash(ns))
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
