//! Derivations: fields that the documents of one collection have because of the documents of another. Declared on the
//! collection that has the fields; the other, the source, has a note of who watches it in its options, so that a write to
//! it finds what follows with the look-up that every write makes anyway.

pub(crate) mod delayed;
mod fill;
pub(crate) mod gate;
mod link;
pub(crate) mod marks;
mod patch;
mod reads;
mod rename;
mod summary;
mod watch;
pub(crate) mod worker;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use espalier_query::Filter;
use espalier_store::{Change, Namespace, Transaction};
use espalier_value::{DocBuf, Path, RawDoc, Result};

pub(crate) use delayed::Happened;
pub(crate) use fill::{check, fill_one};
pub(crate) use link::{Key, Link};
pub(crate) use patch::Patch;
pub(crate) use reads::Reads;
pub(crate) use rename::follow as follow_rename;
pub(crate) use summary::{Moved, Summary, Summed};
pub(crate) use watch::{check_cycles, has_images, register, unregister, watchers, with_watchers_of};

use crate::write::{Turn, Write};

/// A pattern that keeps fields in the documents of the collection it is declared on.
pub(crate) trait Derivation: Debug + Send + Sync {
    fn kind(&self) -> &'static str;
    /// The collection it reads, in the same database.
    fn source(&self) -> &str;
    /// The fields at the top of the source's documents that it reads; a change of others is of no concern.
    fn reads(&self) -> &Reads;
    /// The fields that it keeps, which nobody else writes.
    fn owns(&self) -> &[Path];
    /// The fields at the top of the collection's own documents that decide what they get.
    fn depends(&self) -> Vec<&str>;

    /// Makes the indexes that it needs, on the source and (once it is there) on the collection.
    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()>;

    /// Fields of the widest index it makes, beyond those by which documents are found.
    fn index_width(&self) -> usize {
        0
    }

    /// What a document of the collection is to have, by what the source holds.
    fn expected(&self, at: &dyn Transaction, ns: &Namespace, doc: RawDoc<'_>) -> Result<Patch>;

    /// Whether a document may differ from that because it has not been got to yet.
    fn is_behind(&self, _: &dyn Transaction, _: &Namespace, _: RawDoc<'_>) -> Result<bool> {
        Ok(false)
    }

    /// As [`Derivation::expected`], for a document that is about to be inserted: nobody may change what it depends on at
    /// the same time without noticing.
    fn arrive(&self, write: &mut Write<'_>, ns: &Namespace, doc: RawDoc<'_>) -> Result<Patch>;

    /// What a document of the collection is to have after somebody changed it.
    fn changed(&self, write: &mut Write<'_>, ns: &Namespace, before: RawDoc<'_>, after: RawDoc<'_>) -> Result<Patch>;

    /// Documents of the source have changed.
    fn follow(&self, write: &mut Write<'_>, ns: &Namespace, changes: &[&Change]) -> Result<()>;

    /// The document that a new document of the source leads to, if it is one and can be told at a glance.
    fn turn(&self, _ns: &Namespace, _source: RawDoc<'_>) -> Option<Turn> {
        None
    }

    /// The documents with this key, for a derivation that leaves some of its work for later.
    fn concerned(&self, _key: &Key) -> Result<Option<Arc<Filter>>> {
        Ok(None)
    }

    /// How much later it may follow; `None`: with the write itself.
    fn within(&self) -> Option<Duration> {
        None
    }

    /// The key of a document of the source, and of the collection.
    fn source_key(&self, doc: RawDoc<'_>) -> Option<Key>;
    fn own_key(&self, doc: RawDoc<'_>) -> Option<Key>;

    /// As [`Derivation::follow`], later. The transaction sees everything up to `time`.
    fn catch_up(&self, _: &mut Write<'_>, _: &Namespace, _: &[Happened], _time: u64) -> Result<()> {
        Ok(())
    }

    /// Notes in a document that it was computed anew at that time.
    fn stamp(&self, _: &mut Patch, _time: u64) {}

    /// Its health, for `collStats`.
    fn health(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf>;
}

/// Whether a change is of any concern to a derivation.
pub(crate) fn matters(derivation: &dyn Derivation, change: &Change) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => derivation.reads().differ(before.as_raw(), after.as_raw()),
        _ => true,
    }
}
