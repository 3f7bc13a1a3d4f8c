//! Indexes: which keys a document has in an index, and how an entry is written.

pub mod entry;
pub mod keys;
pub mod wildcard;

pub use entry::Entry;
pub use keys::Keys;
