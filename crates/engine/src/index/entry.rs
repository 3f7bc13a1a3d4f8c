//! How an index entry is written: a unique index keeps the record id in the value, so that the key itself is the
//! conflict; any other keeps it at the end of the key.

use espalier_store::IndexSpec;
use espalier_value::key::Types;
use espalier_value::{Collator, ValueRef};

use crate::layout::{RECORD_BYTES, RecordId, TREE_BYTES, record_at_end, record_at_start};

/// An entry ready to be written.
pub struct Entry {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl Entry {
    /// The entry of a document in the `_id` index.
    pub fn of_id(tree: u64, id: ValueRef<'_>, collator: Collator<'_>, record: RecordId) -> Entry {
        let mut key = Vec::with_capacity(TREE_BYTES + 24);
        key.extend_from_slice(&tree.to_be_bytes());
        collator.encode(&mut key, id);
        let mut types = Types::new();
        types.note(id);
        let mut value = Vec::with_capacity(RECORD_BYTES + types.as_bytes().len());
        value.extend_from_slice(&record.to_be_bytes());
        value.extend_from_slice(types.as_bytes());
        Entry { key, value }
    }

    pub fn new(tree: u64, spec: &IndexSpec, encoded: &[u8], types: &[u8], record: RecordId) -> Entry {
        let mut key = Vec::with_capacity(TREE_BYTES + encoded.len() + RECORD_BYTES);
        key.extend_from_slice(&tree.to_be_bytes());
        key.extend_from_slice(encoded);
        let mut value = Vec::with_capacity(RECORD_BYTES + types.len());
        if spec.unique {
            value.extend_from_slice(&record.to_be_bytes());
        } else {
            key.extend_from_slice(&record.to_be_bytes());
        }
        value.extend_from_slice(types);
        Entry { key, value }
    }
}

/// The parts of a stored entry: encoded fields, record id, type bytes.
pub fn split<'e>(unique: bool, key: &'e [u8], value: &'e [u8]) -> (&'e [u8], RecordId, &'e [u8]) {
    let fields = key.get(TREE_BYTES..).unwrap_or_default();
    if unique {
        (fields, record_at_start(value), value.get(RECORD_BYTES..).unwrap_or_default())
    } else {
        (fields.get(..fields.len().saturating_sub(RECORD_BYTES)).unwrap_or_default(), record_at_end(key), value)
    }
}
