//! The log: every commit, appended before it is acknowledged, in segments that belong to one
//! memtable each. A position in the log (`lsn`) counts record bytes since the database was
//! made, across segments.
//!
//! The log is also the history: segments that recovery no longer needs are kept within bounds and
//! can be read from any stamp on (`History`). Every commit has a stamp, a time that only grows.

mod history;
mod kept;
mod record;
mod replay;
mod segment;
mod writer;

pub use history::{History, Record};
pub(crate) use kept::{Kept, KeptSegment, chain};
pub(crate) use replay::{Replayed, replay};
pub(crate) use segment::{Segment, Start, file_name, segment_id};
pub(crate) use writer::{Log, Place};
