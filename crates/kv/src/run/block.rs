//! A block of sorted entries, laid out so that a reader can binary-search it and lend its
//! values without decoding it first.
//!
//! The prefix that all keys share is stored once; each entry has the rest of its key. A table at
//! the end has, for entry n, where it starts and the first bytes of its suffix, so that a search
//! stays within a few cache lines. `parse` checks every entry once, so that access afterwards
//! cannot run out of bounds.

use std::cmp::Ordering;

use crate::varint;

const HEADER_BYTES: usize = 16;
/// Where the entry starts, and the first bytes of its suffix as a number.
const SLOT_BYTES: usize = 8;

/// Collects entries in order and writes the block.
pub(super) struct BlockBuilder {
    /// Full keys back to back; cut down to suffixes when the shared prefix is known.
    keys: Vec<u8>,
    values: Vec<u8>,
    entries: Vec<Pending>,
    prefix_len: usize,
}

struct Pending {
    key_end: usize,
    value_end: usize,
    seq: u64,
    deleted: bool,
}

impl BlockBuilder {
    pub(super) fn new() -> BlockBuilder {
        BlockBuilder { keys: Vec::new(), values: Vec::new(), entries: Vec::new(), prefix_len: 0 }
    }

    pub(super) fn add(&mut self, key: &[u8], seq: u64, value: Option<&[u8]>) {
        self.prefix_len = match self.entries.first() {
            None => key.len(),
            Some(first) => shared_prefix(&self.keys[..first.key_end.min(self.prefix_len)], key),
        };
        self.keys.extend_from_slice(key);
        self.values.extend_from_slice(value.unwrap_or_default());
        self.entries.push(Pending {
            key_end: self.keys.len(),
            value_end: self.values.len(),
            seq,
            deleted: value.is_none(),
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// About how large the block would be now.
    pub(super) fn len_bytes(&self) -> usize {
        self.keys.len() + self.values.len() + self.entries.len() * (SLOT_BYTES + 4)
            - self.prefix_len * self.entries.len().saturating_sub(1)
    }

    /// Writes the block to `out` (cleared first) and starts over.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        out.clear();
        out.reserve(self.len_bytes() + HEADER_BYTES + 64);
        let base_seq = self.entries.first().map_or(0, |entry| entry.seq);
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.prefix_len as u32).to_le_bytes());
        out.extend_from_slice(&base_seq.to_le_bytes());
        out.extend_from_slice(&self.keys[..self.prefix_len]);
        let mut slots = Vec::with_capacity(self.entries.len() * SLOT_BYTES);
        let (mut key_start, mut value_start) = (0, 0);
        for entry in &self.entries {
            let suffix = &self.keys[key_start + self.prefix_len..entry.key_end];
            slots.extend_from_slice(&(out.len() as u32).to_le_bytes());
            slots.extend_from_slice(&head(suffix).to_le_bytes());
            let value = &self.values[value_start..entry.value_end];
            varint::put(out, suffix.len() as u64);
            // 0 marks a deleted key, so lengths are stored one higher.
            let stored = if entry.deleted { 0 } else { value.len() as u64 + 1 };
            varint::put(out, stored);
            varint::put(out, varint::zigzag(entry.seq.wrapping_sub(base_seq) as i64));
            out.extend_from_slice(suffix);
            out.extend_from_slice(value);
            (key_start, value_start) = (entry.key_end, entry.value_end);
        }
        out.extend_from_slice(&slots);
        self.keys.clear();
        self.values.clear();
        self.entries.clear();
        self.prefix_len = 0;
    }
}

/// The first bytes as a number that orders as they do; shorter ones are filled with zeros.
#[inline]
fn head(suffix: &[u8]) -> u32 {
    match suffix.first_chunk() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 4];
            bytes[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(bytes)
        }
    }
}

fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// A checked block in memory.
pub(crate) struct Block {
    data: Box<[u8]>,
    count: usize,
    prefix_len: usize,
    base_seq: u64,
    slots_at: usize,
}

/// One entry: where its parts lie in the block.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) suffix: &'a [u8],
    pub(crate) seq: u64,
    /// Start and end of the value; `None` for a deleted key.
    pub(crate) value: Option<(usize, usize)>,
}

impl Block {
    /// `Err` says what is wrong.
    pub(crate) fn parse(data: Vec<u8>) -> Result<Block, &'static str> {
        let number = |at: usize| -> Option<u32> { Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?)) };
        let count = number(0).ok_or("block without a header")? as usize;
        let prefix_len = number(4).ok_or("block without a header")? as usize;
        let base_seq = data
            .get(8..)
            .and_then(|rest| rest.first_chunk())
            .map(|bytes| u64::from_le_bytes(*bytes))
            .ok_or("block without a header")?;
        let slots_at = count
            .checked_mul(SLOT_BYTES)
            .and_then(|table| data.len().checked_sub(table))
            .ok_or("block shorter than its offset table")?;
        if count == 0 || HEADER_BYTES + prefix_len > slots_at {
            return Err("block shorter than its header says");
        }
        let block = Block { count, prefix_len, base_seq, slots_at, data: data.into_boxed_slice() };
        let mut expected = HEADER_BYTES + prefix_len;
        for index in 0..count {
            if block.offset(index) != expected {
                return Err("block with a wrong entry offset");
            }
            expected =
                block.entry_end(expected).filter(|&end| end <= slots_at).ok_or("block with an entry past its end")?;
            if block.head(index) != head(block.entry(index).suffix) {
                return Err("block with a wrong key head");
            }
        }
        if expected != slots_at {
            return Err("block with bytes after its last entry");
        }
        Ok(block)
    }

    fn entry_end(&self, mut at: usize) -> Option<usize> {
        let suffix = varint::get(&self.data, &mut at)?;
        let value = varint::get(&self.data, &mut at)?;
        varint::get(&self.data, &mut at)?;
        let end = (at as u64).checked_add(suffix)?.checked_add(value.saturating_sub(1))?;
        usize::try_from(end).ok()
    }

    #[inline]
    fn number(&self, at: usize) -> u32 {
        let bytes = self.data[at..at + 4].first_chunk();
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    #[inline]
    fn offset(&self, index: usize) -> usize {
        self.number(self.slots_at + index * SLOT_BYTES) as usize
    }

    #[inline]
    fn head(&self, index: usize) -> u32 {
        self.number(self.slots_at + index * SLOT_BYTES + 4)
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.data.len() + size_of::<Block>()
    }

    pub(crate) fn prefix(&self) -> &[u8] {
        &self.data[HEADER_BYTES..HEADER_BYTES + self.prefix_len]
    }

    pub(crate) fn slice(&self, range: (usize, usize)) -> &[u8] {
        &self.data[range.0..range.1]
    }

    /// Entry `index`, which must be below `count`.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Entry<'_> {
        let mut at = self.offset(index);
        // Checked by `parse`, so the zeros below are never used.
        let suffix_len = varint::get(&self.data, &mut at).unwrap_or(0) as usize;
        let stored = varint::get(&self.data, &mut at).unwrap_or(0) as usize;
        let delta = varint::unzigzag(varint::get(&self.data, &mut at).unwrap_or(0));
        let value_at = at + suffix_len;
        Entry {
            suffix: &self.data[at..value_at],
            seq: self.base_seq.wrapping_add(delta as u64),
            value: (stored > 0).then(|| (value_at, value_at + stored - 1)),
        }
    }

    /// The index of the first entry whose key is at or above `key` (`count` if none), and
    /// whether it is exactly `key`.
    pub(crate) fn search(&self, key: &[u8]) -> (usize, bool) {
        self.search_stepping(self.count / 2, usize::MAX, key)
    }

    /// As [`Block::search`], and the faster the nearer to entry `start` the key is.
    #[inline]
    pub(crate) fn search_from(&self, start: usize, key: &[u8]) -> (usize, bool) {
        self.search_stepping(start, 1, key)
    }

    /// Away from `middle` in steps that double, until the key is between two of them; from then on by halves.
    #[inline]
    fn search_stepping(&self, mut middle: usize, mut step: usize, key: &[u8]) -> (usize, bool) {
        let prefix = self.prefix();
        match key[..key.len().min(prefix.len())].cmp(prefix) {
            Ordering::Less => return (0, false),
            Ordering::Greater => return (self.count, false),
            Ordering::Equal => {}
        }
        let suffix = &key[prefix.len()..];
        let target = head(suffix);
        let (mut low, mut high) = (0, self.count);
        while low < high {
            if middle < low || middle >= high {
                middle = low + (high - low) / 2;
            }
            let order = self.head(middle).cmp(&target);
            // Equal heads say nothing about the rest.
            match order.then_with(|| self.entry(middle).suffix.cmp(suffix)) {
                Ordering::Less => {
                    low = middle + 1;
                    middle = middle.saturating_add(step);
                }
                Ordering::Equal => return (middle, true),
                Ordering::Greater => {
                    high = middle;
                    middle = middle.checked_sub(step).unwrap_or(usize::MAX);
                }
            }
            step = step.saturating_mul(2);
        }
        (low, false)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sample() -> Vec<u8> {
        let mut builder = BlockBuilder::new();
        builder.add(b"tree/apple", 7, Some(b"red"));
        builder.add(b"tree/apricot", 3, None);
        builder.add(b"tree/banana", 9, Some(b""));
        let mut out = Vec::new();
        builder.finish(&mut out);
        assert!(builder.is_empty());
        out
    }

    #[test]
    fn entries_come_back() {
        let block = Block::parse(sample()).unwrap();
        assert_eq!(block.prefix(), b"tree/");
        assert_eq!(block.entry(0).suffix, b"apple");
        assert_eq!(block.slice(block.entry(0).value.unwrap()), b"red");
        assert_eq!((block.entry(1).seq, block.entry(1).value), (3, None));
        assert_eq!(block.slice(block.entry(2).value.unwrap()), b"");
    }

    #[test]
    fn search_finds_the_place() {
        let block = Block::parse(sample()).unwrap();
        for (key, expected) in [
            (&b"a"[..], (0, false)),
            (b"tree/", (0, false)),
            (b"tree/apple", (0, true)),
            (b"tree/applf", (1, false)),
            (b"tree/banana", (2, true)),
            (b"tree/c", (3, false)),
            (b"zoo", (3, false)),
            (b"tre", (0, false)),
        ] {
            assert_eq!(block.search(key), expected, "{key:?}");
            for start in 0..4 {
                assert_eq!(block.search_from(start, key), expected, "{key:?} from {start}");
            }
        }
    }

    #[test]
    fn no_damage_makes_it_panic() {
        let good = sample();
        for cut in 0..good.len() {
            assert!(Block::parse(good[..cut].to_vec()).is_err(), "cut at {cut}");
        }
        for at in 0..good.len() {
            for mask in [1, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= mask;
                if let Ok(block) = Block::parse(bad) {
                    for index in 0..block.count() {
                        let entry = block.entry(index);
                        entry.value.map(|range| block.slice(range).len());
                    }
                    block.search(b"tree/banana");
                }
            }
        }
    }
}
