//! Where things live in the key-value engine: `[tree id][key]`, a tree for the catalog, one for counts, one for each
//! collection's records and one for each index. Tree ids are never used twice.

/// One entry a collection: its description as BSON.
pub const CATALOG: u64 = 1;
/// One entry a collection: its count and size, kept by every commit.
pub const COUNTS: u64 = 2;
/// What belongs to the store as a whole.
pub const META: u64 = 3;
/// What came of retryable writes and transactions, by session.
pub const RETRY: u64 = 4;
/// Collections and indexes are numbered from here.
pub const FIRST_TREE: u64 = 64;

pub const TREE_BYTES: usize = 8;
pub const RECORD_BYTES: usize = 8;
pub const RECORD_KEY_BYTES: usize = TREE_BYTES + RECORD_BYTES;

/// A document's place in its collection; ascending in order of insertion.
pub type RecordId = u64;

pub fn record_key(tree: u64, record: RecordId) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&tree.to_be_bytes());
    key[8..].copy_from_slice(&record.to_be_bytes());
    key
}

/// The record id at the end of a record's key or of an entry in an index that is not unique.
pub fn record_at_end(key: &[u8]) -> RecordId {
    key.last_chunk::<RECORD_BYTES>().map_or(0, |b| RecordId::from_be_bytes(*b))
}

/// The record id at the start of the value of an entry in a unique index.
pub fn record_at_start(value: &[u8]) -> RecordId {
    value.first_chunk::<RECORD_BYTES>().map_or(0, |b| RecordId::from_be_bytes(*b))
}

/// A key that holds one number: catalog and count entries by collection.
pub fn entry_key(tree: u64, id: u64) -> [u8; 16] {
    record_key(tree, id)
}

/// First key of a tree and first key past it.
pub fn tree_range(tree: u64) -> ([u8; TREE_BYTES], [u8; TREE_BYTES]) {
    (tree.to_be_bytes(), (tree + 1).to_be_bytes())
}
