//! The log: every commit, appended before it is acknowledged, in segments that belong to one
//! memtable each. A position in the log (`lsn`) counts record bytes since the database was
//! made, across segments.

mod record;
mod replay;
mod segment;
mod writer;

pub(crate) use replay::{Replayed, replay};
pub(crate) use segment::{Segment, file_name, segment_id};
pub(crate) use writer::Log;
