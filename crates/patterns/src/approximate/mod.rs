//! `approximate`: counters that are hit thousands of times a second. A `$inc` of a declared field goes to a small document
//! beside the collection, one for each document that has increments waiting; the document itself is rewritten when enough
//! of them have come together or the first has waited long enough.
//!
//! Invariant: every pending document belongs to a document of the collection, and says which values the declared fields
//! of that have (`from`) and which they have with its increments (`to`).
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `fields` | required | paths of the counters |
//! | `flush.count` | 100 | increments of one document after which it is rewritten |
//! | `flush.within` | `5s` | longest time that an increment waits |
//! | `stamp` | `lastFlushed` beside the first field | field with the time of the last flush |
//! | `read` | `exact` | `flushed`: reads see the counters as of the last flush |
//! | `durable` | true | false: an increment is acknowledged before it is on disk |
//! | `into` | `productsPending` for `products` | collection of the pending documents |
//!
//! The values are kept, not the differences: they are what one `$inc` after the other gives, whatever the numbers' types.
//!
//! A pending document is made by a transaction that has seen the document and no pending one. Whoever writes a counter, or
//! deletes the document, without having seen a pending document writes one and takes it back (`bar`), so that the two
//! conflict. Everybody else conflicts on the pending document itself.

mod append;
mod at_once;
mod check;
mod counters;
mod declare;
mod explain;
mod find;
mod flush;
mod indexes;
mod layout;
mod merge;
mod overlay;
mod row;
mod write;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use espalier_store::Namespace;
use espalier_value::{Code, Error, Path};

use counters::Counters;
pub use declare::APPROXIMATE;

/// A declaration, read.
#[derive(Debug)]
pub struct Approximate {
    counters: Arc<Counters>,
    flush_count: u64,
    within: Duration,
    within_text: Box<str>,
    stamp: Path,
    read: Read,
    durable: bool,
    into: Box<str>,
    /// Documents rewritten with their increments since the declaration was read.
    flushes: AtomicU64,
}

/// What a read sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Read {
    Exact,
    Flushed,
}

impl Approximate {
    /// The collection of the pending documents.
    fn pending(&self, ns: &Namespace) -> Namespace {
        Namespace::new(ns.db(), &self.into)
    }

    fn not_yours(&self) -> Error {
        Error::new(
            Code::ImmutableField,
            format!(
                "the field '{}' belongs to the pattern 'approximate', which writes the time of the last flush there; \
                 leave it out",
                self.stamp
            ),
        )
    }
}
