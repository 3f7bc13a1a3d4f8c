//! `archive`: old documents out of the way. Documents that a filter describes move to a collection of their own, some
//! time after they come to meet it, and come back when they are written to.
//!
//! Invariant: every document is in exactly one of the two collections, and `_id` and unique keys hold across both.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `when` | required | filter for the documents to archive; `"$$NOW - 90d"` in it is a time |
//! | `into` | `ordersArchive` for `orders` | collection of the archived documents |
//! | `stamp` | `{archivedAt: "$$NOW"}` | fields that an archived document gets |
//! | `every` | `1h` | time between two runs |
//! | `batch` | 1000 | documents that a run looks for at a time |
//! | `read` | `active` | `union`: every read sees both; else only one that names documents by `_id` does |
//! | `write` | `thaw` | `refuse`: an archived document cannot be written to |
//!
//! A write sees what a read with its filter sees. An archived document is read with its stamps, which belong to the
//! pattern: no client writes them, and they go when the document comes back.

mod check;
mod cursor;
mod declare;
mod explain;
mod find;
mod indexes;
mod layout;
mod moves;
mod time;
mod write;

use std::time::Duration;

use espalier_store::Namespace;
use espalier_value::{Code, DocBuf, Error, RawDoc};

pub use declare::ARCHIVE;

/// A declaration, read.
#[derive(Clone, Debug)]
pub struct Archive {
    /// As declared; times are filled in by each run.
    when: DocBuf,
    into: Box<str>,
    stamp: DocBuf,
    every: Duration,
    every_text: Box<str>,
    batch: u64,
    read: Read,
    write: Write,
}

/// What a read sees that does not name documents by `_id`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Read {
    Active,
    Union,
}

/// What becomes of a write to an archived document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Write {
    Thaw,
    Refuse,
}

impl Archive {
    /// The collection of the archived documents.
    fn archive(&self, ns: &Namespace) -> Namespace {
        Namespace::new(ns.db(), &self.into)
    }

    fn stamps(&self) -> impl Iterator<Item = &str> {
        self.stamp.as_raw().iter().map(|elem| elem.name())
    }

    /// The document as it was before it was archived.
    fn without_stamps(&self, archived: RawDoc<'_>) -> DocBuf {
        crate::bson::without(archived, &self.stamps().collect::<Vec<_>>())
    }

    fn not_yours(&self, name: &str) -> Error {
        Error::new(
            Code::ImmutableField,
            format!(
                "the field '{name}' belongs to the pattern 'archive', which writes it into the documents it moves to \
                 '{}'; leave it out",
                self.into
            ),
        )
    }
}
