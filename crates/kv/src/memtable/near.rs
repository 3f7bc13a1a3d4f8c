//! Looking keys up one after the other in a memtable: the gap in which a key was not found answers for its neighbours.

use std::cmp::Ordering;
use std::sync::Arc;

use super::way::Way;
use super::{MemCursor, Memtable};
use crate::hash::hash64;

pub(crate) struct NearTable {
    table: Arc<Memtable>,
    /// Stands on the first entry at or above `from`.
    cursor: MemCursor,
    from: Vec<u8>,
    /// Leads to a key below or at `from`.
    way: Way,
}

// SAFETY: the nodes of `way` belong to `table`, which is held, and only their immutable parts and links are read.
unsafe impl Send for NearTable {}
// SAFETY: as above.
unsafe impl Sync for NearTable {}

impl NearTable {
    /// `None` if the table has nothing from `lower` up to `upper`.
    pub(crate) fn new(table: &Arc<Memtable>, seq: u64, lower: &[u8], upper: &[u8]) -> Option<NearTable> {
        let mut cursor = MemCursor::new(table.clone(), seq);
        cursor.seek(lower);
        let has_any = cursor.is_valid() && cursor.key() < upper;
        has_any.then(|| NearTable { table: table.clone(), cursor, from: lower.to_vec(), way: Way::new(table.head) })
    }

    /// Moves to the entry of `key`; `false` if there is none. `hash` is kept for whoever looks for the same key next.
    #[inline]
    pub(crate) fn find(&mut self, key: &[u8], hash: &mut Option<u64>) -> bool {
        if key >= self.from.as_slice() {
            if !self.cursor.is_valid() {
                return false;
            }
            match self.cursor.key().cmp(key) {
                Ordering::Equal => return true,
                Ordering::Greater => return false,
                Ordering::Less => {}
            }
        }
        if !self.table.may_contain(*hash.get_or_insert_with(|| hash64(key))) {
            return false;
        }
        if key < self.from.as_slice() {
            self.way = Way::new(self.table.head);
        }
        self.cursor.advance(&mut self.way, key);
        self.from.clear();
        self.from.extend_from_slice(key);
        self.cursor.is_valid() && self.cursor.key() == key
    }

    /// The value of the entry that was found; `None` if the key is deleted.
    #[inline]
    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.cursor.value()
    }
}
