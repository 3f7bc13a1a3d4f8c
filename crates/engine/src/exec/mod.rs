//! The executor: turns a plan into a stream of documents.

pub mod cursor;
pub mod entries;
pub mod merge;
pub mod parts;
pub mod records;
pub mod tail;

pub use cursor::{FindCursor, open};
pub use entries::estimate;
pub use records::Records;
