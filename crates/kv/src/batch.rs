//! A batch: what one commit writes, already in the form the log stores.
//!
//! Building the log's bytes while the caller adds operations means a commit copies them once
//! and never walks a tree of small allocations.

use crate::options::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::varint::{self, Reader};
use crate::{KvError, Result};

const PUT: u8 = 1;
const PUT_NEW: u8 = 2;
const DELETE: u8 = 3;
const DROP_TREE: u8 = 4;

/// One decoded operation of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    Put { key: &'a [u8], value: &'a [u8], new: bool },
    Delete { key: &'a [u8] },
    DropTree { tree: u64 },
}

/// What history tells of one operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    Put { key: &'a [u8], value: &'a [u8] },
    Delete { key: &'a [u8] },
    DropTree { tree: u64 },
}

impl<'a> From<Op<'a>> for Entry<'a> {
    fn from(op: Op<'a>) -> Entry<'a> {
        match op {
            Op::Put { key, value, .. } => Entry::Put { key, value },
            Op::Delete { key } => Entry::Delete { key },
            Op::DropTree { tree } => Entry::DropTree { tree },
        }
    }
}

/// Where in an operation a relative number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relative {
    KeyEnd,
    ValueStart,
}

const NUMBER_BYTES: usize = size_of::<u64>();

/// Writes that happen together or not at all. Of several operations on one key the last wins;
/// dropping a tree wins over every write to it in the same batch.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    ops: Vec<u8>,
    guards: Vec<Box<[u8]>>,
    /// Where the relative numbers end.
    relatives: Vec<usize>,
    /// Places in the last `put`.
    last_key_end: usize,
    last_value_at: usize,
    annotation: Vec<u8>,
    count: usize,
    drops: usize,
    too_large: Option<KvError>,
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    pub fn with_capacity(bytes: usize) -> Batch {
        Batch { ops: Vec::with_capacity(bytes), ..Batch::default() }
    }

    /// Empties the batch and keeps its memory, for the next commit.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.guards.clear();
        self.relatives.clear();
        self.annotation.clear();
        (self.count, self.drops, self.too_large) = (0, 0, None);
    }

    /// Bytes of memory held.
    pub fn capacity_bytes(&self) -> usize {
        self.ops.capacity()
    }

    /// Makes room for operations of so many bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.ops.reserve(bytes);
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.put_op(PUT, key, value);
    }

    /// Like `put`, where the caller knows that no other commit can write this key, such as a
    /// fresh record id: the conflict check is skipped.
    pub fn put_new(&mut self, key: &[u8], value: &[u8]) {
        self.put_op(PUT_NEW, key, value);
    }

    pub fn delete(&mut self, key: &[u8]) {
        self.check_len("a key", key.len(), KEY_BYTES_MAX);
        self.ops.push(DELETE);
        varint::put_slice(&mut self.ops, key);
        self.count += 1;
    }

    /// The commit conflicts if this key changed, though it does not write it.
    pub fn guard(&mut self, key: &[u8]) {
        self.guards.push(key.into());
    }

    /// Removes every key that starts with this tree id (8 bytes, big-endian). Tree ids are
    /// never used again: a later write to a dropped tree is a conflict.
    pub fn drop_tree(&mut self, tree: u64) {
        self.ops.push(DROP_TREE);
        varint::put(&mut self.ops, tree);
        self.count += 1;
        self.drops += 1;
    }

    /// What the commit's record in the log says beside its operations, for readers of the history. It is not
    /// stored anywhere else, and means nothing to this engine.
    pub fn annotation(&mut self) -> &mut Vec<u8> {
        &mut self.annotation
    }

    /// Marks a number (8 bytes, big-endian) in the operation just put as relative: its owner learns what it
    /// counts from only when the commit is about to be made, and then calls `count_from`.
    pub fn relative(&mut self, place: Relative) {
        let end = match place {
            Relative::KeyEnd => self.last_key_end,
            Relative::ValueStart => self.last_value_at + NUMBER_BYTES,
        };
        debug_assert!(end <= self.ops.len());
        self.relatives.push(end);
    }

    /// Adds `first` to all relative numbers, which are relative no more.
    pub fn count_from(&mut self, first: u64) {
        for end in self.relatives.drain(..) {
            if let Some(number) = self.ops.get_mut(..end).and_then(|ops| ops.last_chunk_mut()) {
                *number = first.wrapping_add(u64::from_be_bytes(*number)).to_be_bytes();
            }
        }
    }

    /// Bytes this batch will take in the log.
    pub fn len_bytes(&self) -> usize {
        self.ops.len() + self.annotation.len()
    }

    /// Where the next operation will stand, for [`Batch::entries_from`].
    pub fn position(&self) -> usize {
        self.ops.len()
    }

    /// The operations that were added after [`Batch::position`] gave `position`.
    pub fn entries_from(&self, position: usize) -> impl Iterator<Item = Entry<'_>> {
        // A batch decodes what it encoded itself.
        Ops::new(self.ops.get(position..).unwrap_or_default()).flatten().map(Entry::from)
    }

    /// Operations in the batch, guards not counted.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.annotation.is_empty()
    }

    fn put_op(&mut self, op: u8, key: &[u8], value: &[u8]) {
        self.check_len("a key", key.len(), KEY_BYTES_MAX);
        self.check_len("a value", value.len(), VALUE_BYTES_MAX);
        self.ops.reserve(key.len() + value.len() + 16);
        self.ops.push(op);
        varint::put_slice(&mut self.ops, key);
        self.last_key_end = self.ops.len();
        varint::put_slice(&mut self.ops, value);
        self.last_value_at = self.ops.len() - value.len();
        self.count += 1;
    }

    /// Remembered here and reported by the commit, so that building a batch cannot fail.
    fn check_len(&mut self, what: &'static str, bytes: usize, bytes_max: usize) {
        if bytes > bytes_max && self.too_large.is_none() {
            self.too_large = Some(KvError::TooLarge { what, bytes, bytes_max });
        }
    }

    pub(crate) fn check_limits(&self) -> Result<()> {
        match &self.too_large {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.ops
    }

    pub(crate) fn noted(&self) -> &[u8] {
        &self.annotation
    }

    /// Of all that goes into the log.
    pub(crate) fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.ops);
        hasher.update(&self.annotation);
        hasher.finalize()
    }

    pub(crate) fn guards(&self) -> &[Box<[u8]>] {
        &self.guards
    }

    pub(crate) fn has_drops(&self) -> bool {
        self.drops > 0
    }

    pub(crate) fn ops(&self) -> Ops<'_> {
        Ops::new(&self.ops)
    }
}

/// Decodes a batch's bytes. `Some(Err)` at most once, at the offset of a malformed operation.
pub(crate) struct Ops<'a> {
    reader: Reader<'a>,
    failed: bool,
}

/// The offset within a batch at which its bytes make no sense.
#[derive(Debug)]
pub(crate) struct Malformed(pub(crate) usize);

impl<'a> Ops<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Ops<'a> {
        Ops { reader: Reader::new(bytes), failed: false }
    }

    fn read(&mut self) -> Option<Op<'a>> {
        let reader = &mut self.reader;
        Some(match reader.u8()? {
            op @ (PUT | PUT_NEW) => Op::Put { key: reader.slice()?, value: reader.slice()?, new: op == PUT_NEW },
            DELETE => Op::Delete { key: reader.slice()? },
            DROP_TREE => Op::DropTree { tree: reader.varint()? },
            _ => return None,
        })
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Op<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.is_empty() {
            return None;
        }
        let at = self.reader.position();
        let op = self.read();
        self.failed = op.is_none();
        Some(op.ok_or(Malformed(at)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn relative_numbers_count_from_what_the_owner_says() {
        let mut batch = Batch::new();
        let key = |number: u64| [b"tree".as_slice(), &number.to_be_bytes()].concat();
        let value = |number: u64, filler: usize| [&number.to_be_bytes(), vec![7; filler].as_slice()].concat();
        batch.put_new(&key(0), &vec![1; 300]);
        batch.relative(Relative::KeyEnd);
        batch.put(b"unique", &value(1, 200));
        batch.relative(Relative::ValueStart);
        batch.put(b"other", &value(1, 0));
        batch.count_from(1000);
        batch.count_from(5);
        let ops: Vec<_> = batch.ops().map(|op| op.unwrap()).collect();
        assert_eq!(ops[0], Op::Put { key: &key(1000), value: &vec![1; 300], new: true });
        assert_eq!(ops[1], Op::Put { key: b"unique", value: &value(1001, 200), new: false });
        assert_eq!(ops[2], Op::Put { key: b"other", value: &value(1, 0), new: false });
    }

    #[test]
    fn operations_come_back_in_order() {
        let mut batch = Batch::new();
        batch.put(b"a", b"1");
        batch.put_new(b"b", b"");
        batch.delete(b"c");
        batch.drop_tree(u64::MAX);
        batch.guard(b"g");
        let ops: Vec<_> = batch.ops().map(|op| op.unwrap()).collect();
        assert_eq!(
            ops,
            [
                Op::Put { key: b"a", value: b"1", new: false },
                Op::Put { key: b"b", value: b"", new: true },
                Op::Delete { key: b"c" },
                Op::DropTree { tree: u64::MAX },
            ]
        );
        assert_eq!((batch.len(), batch.guards().len()), (4, 1));
    }

    #[test]
    fn operations_since_a_position_are_those_added_after_it() {
        let mut batch = Batch::new();
        assert_eq!(batch.entries_from(batch.position()).count(), 0);
        batch.put(b"a", b"1");
        let position = batch.position();
        batch.delete(b"b");
        batch.put_new(b"c", b"3");
        let since: Vec<_> = batch.entries_from(position).collect();
        assert_eq!(since, [Entry::Delete { key: b"b" }, Entry::Put { key: b"c", value: b"3" }]);
        assert_eq!(batch.entries_from(0).count(), 3);
    }

    #[test]
    fn every_truncation_is_noticed() {
        let mut batch = Batch::new();
        batch.put(b"key", b"value");
        let payload = batch.payload();
        for cut in 1..payload.len() {
            assert!(Ops::new(&payload[..cut]).any(|op| op.is_err()), "cut at {cut}");
        }
        assert!(Ops::new(&[99]).next().unwrap().is_err());
    }

    #[test]
    fn an_over_long_key_is_reported_by_the_commit() {
        let mut batch = Batch::new();
        batch.delete(&vec![0; KEY_BYTES_MAX + 1]);
        assert!(matches!(batch.check_limits(), Err(KvError::TooLarge { .. })));
    }
}
