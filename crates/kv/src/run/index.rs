//! The sparse index of a run: for each block a key that separates it from the next, and where
//! the block lies.

use crate::key_table::KeyTable;
use crate::varint::{self, Reader};

#[derive(Default)]
pub(super) struct IndexBuilder {
    encoded: Vec<u8>,
}

impl IndexBuilder {
    /// `separator` is at or above the block's last key and below the next block's first.
    pub(super) fn add(&mut self, separator: &[u8], stored_bytes: u64) {
        varint::put_slice(&mut self.encoded, separator);
        varint::put(&mut self.encoded, stored_bytes);
    }

    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.encoded)
    }
}

/// The shortest key that is at or above `last` and below `next`: long keys would otherwise
/// fill the memory.
pub(super) fn separator<'a>(last: &'a [u8], next: &'a [u8]) -> &'a [u8] {
    let shared = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    // One byte past the shared part `next` is above `last`; that prefix is still below `next`
    // only if it is shorter.
    if shared + 1 < next.len() { &next[..shared + 1] } else { last }
}

pub(crate) struct Index {
    keys: KeyTable,
    /// Where each block starts, and at the end where the last one ends.
    offsets: Box<[u64]>,
}

impl Index {
    pub(super) fn parse(encoded: &[u8]) -> Option<Index> {
        let mut reader = Reader::new(encoded);
        let mut keys: Vec<&[u8]> = Vec::new();
        let mut offsets = vec![0u64];
        let mut offset = 0u64;
        while !reader.is_empty() {
            let key = reader.slice()?;
            if keys.last().is_some_and(|&last| last >= key) {
                return None;
            }
            keys.push(key);
            offset = offset.checked_add(reader.varint()?)?;
            offsets.push(offset);
        }
        if keys.is_empty() {
            return None;
        }
        Some(Index { keys: KeyTable::new(keys.into_iter())?, offsets: offsets.into() })
    }

    pub(crate) fn blocks(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.keys.memory_bytes() + self.offsets.len() * 8
    }

    /// All blocks together.
    pub(super) fn data_bytes(&self) -> u64 {
        self.offsets[self.offsets.len() - 1]
    }

    /// Start and end of a block in the file.
    pub(super) fn block_range(&self, block: usize) -> (u64, u64) {
        (self.offsets[block], self.offsets[block + 1])
    }

    /// The block that holds `key` if any does; `blocks()` if it is above all of them.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        self.keys.find(key)
    }

    /// Bytes of blocks before the one that would hold `key`.
    pub(super) fn bytes_before(&self, key: &[u8]) -> u64 {
        self.offsets[self.find(key)]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn separators_separate() {
        for (last, next) in [
            (&b"apple"[..], &b"banana"[..]),
            (b"app", b"apple"),
            (b"appa", b"appb"),
            (b"a", b"b"),
            (b"", b"x"),
            (b"abc", b"abcd"),
        ] {
            let found = separator(last, next);
            assert!(last <= found && found < next, "{last:?} {found:?} {next:?}");
        }
        assert_eq!(separator(b"apple", b"banana"), b"b");
    }

    #[test]
    fn find_gives_the_block() {
        let mut builder = IndexBuilder::default();
        builder.add(b"b", 10);
        builder.add(b"d", 20);
        let index = Index::parse(&builder.finish()).unwrap();
        assert_eq!([&b"a"[..], b"b", b"c", b"d", b"e"].map(|key| index.find(key)), [0, 0, 1, 1, 2]);
        assert_eq!(index.block_range(1), (10, 30));
        assert_eq!(index.bytes_before(b"c"), 10);
        assert_eq!(index.data_bytes(), 30);
    }

    #[test]
    fn damage_and_disorder_are_refused() {
        let mut builder = IndexBuilder::default();
        builder.add(b"abc", 10);
        let encoded = builder.finish();
        for cut in 0..encoded.len() {
            assert!(Index::parse(&encoded[..cut]).is_none());
        }
        builder.add(b"b", 1);
        builder.add(b"a", 1);
        assert!(Index::parse(&builder.finish()).is_none());
    }
}
