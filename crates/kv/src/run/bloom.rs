//! A blocked bloom filter: one cache line tells whether a run may hold a key.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const BITS_PER_KEY: usize = 10;
const LINE_BYTES: usize = 64;
const PROBES: usize = 6;

#[derive(Default)]
pub(super) struct BloomBuilder {
    hashes: Vec<u64>,
}

impl BloomBuilder {
    /// `hash` is the `hash64` of the key.
    pub(super) fn add(&mut self, hash: u64) {
        self.hashes.push(hash);
    }

    pub(super) fn finish(&mut self) -> Vec<u8> {
        let lines = (self.hashes.len() * BITS_PER_KEY).div_ceil(LINE_BYTES * 8).max(1);
        let mut bits = vec![0u8; lines * LINE_BYTES];
        for hash in self.hashes.drain(..) {
            let line = line_of(hash, lines) * LINE_BYTES;
            for bit in probes(hash) {
                bits[line + bit / 8] |= 1 << (bit % 8);
            }
        }
        bits
    }
}

fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

/// Bits within the line.
fn probes(hash: u64) -> impl Iterator<Item = usize> {
    let mut state = hash as u32;
    (0..PROBES).map(move |_| {
        state = state.wrapping_mul(0x9e37_79b9).wrapping_add(0x7f4a_7c15);
        (state >> 23) as usize
    })
}

pub(crate) struct Bloom {
    bits: Box<[u8]>,
}

impl Bloom {
    /// `None` if the length is not one a filter can have.
    pub(super) fn parse(bits: Vec<u8>) -> Option<Bloom> {
        (!bits.is_empty() && bits.len().is_multiple_of(LINE_BYTES)).then(|| Bloom { bits: bits.into_boxed_slice() })
    }

    pub(super) fn bytes(&self) -> usize {
        self.bits.len()
    }

    /// `false` is certain. `hash` is the `hash64` of the key.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let start = line_of(hash, self.bits.len() / LINE_BYTES) * LINE_BYTES;
        let line = &self.bits[start..start + LINE_BYTES];
        probes(hash).all(|bit| line[bit / 8] & (1 << (bit % 8)) != 0)
    }
}

/// The filter of a memtable: filled by one writer while others read. It spares most reads of
/// older data the walk through the skip list.
pub(crate) struct MemBloom {
    words: Box<[AtomicU64]>,
}

impl MemBloom {
    /// Sized for entries of a hundred bytes or more; more and smaller ones make it less exact.
    pub(crate) fn new(memtable_bytes: usize) -> MemBloom {
        let lines = (memtable_bytes / LINE_BYTES / LINE_BYTES).max(1);
        MemBloom { words: (0..lines * LINE_BYTES / 8).map(|_| AtomicU64::new(0)).collect() }
    }

    fn line(&self, hash: u64) -> &[AtomicU64] {
        let start = line_of(hash, self.words.len() * 8 / LINE_BYTES) * (LINE_BYTES / 8);
        &self.words[start..start + LINE_BYTES / 8]
    }

    /// Called by the one writer, before the entry can be seen.
    #[inline]
    pub(crate) fn add(&self, hash: u64) {
        let line = self.line(hash);
        for bit in probes(hash) {
            let word = &line[bit / 64];
            word.store(word.load(Relaxed) | 1 << (bit % 64), Relaxed);
        }
    }

    /// `false` is certain for every entry that the caller may see: the commit that made it
    /// visible was published after the bits were set.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let line = self.line(hash);
        probes(hash).all(|bit| line[bit / 64].load(Relaxed) & (1 << (bit % 64)) != 0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hash::hash64;

    #[test]
    fn no_false_negatives_and_few_false_positives() {
        for count in [1u64, 100, 20_000] {
            let mut builder = BloomBuilder::default();
            (0..count).for_each(|n| builder.add(hash64(&n.to_be_bytes())));
            let bloom = Bloom::parse(builder.finish()).unwrap();
            let has = |n: u64| bloom.may_contain(hash64(&n.to_be_bytes()));
            assert!((0..count).all(has));
            let wrong = (1_000_000..1_020_000).filter(|&n| has(n)).count();
            assert!(wrong < 20_000 * 3 / 100, "{wrong} of 20000 at {count} keys");
        }
    }

    #[test]
    fn the_filter_of_a_memtable_forgets_nothing() {
        for bytes in [1, 32 << 10, 1 << 20] {
            let bloom = MemBloom::new(bytes);
            let count = bytes as u64 / 100 + 5;
            let hash = |n: u64| hash64(&n.to_be_bytes());
            assert!(!bloom.may_contain(hash(1)), "empty at first");
            (0..count).for_each(|n| bloom.add(hash(n)));
            assert!((0..count).all(|n| bloom.may_contain(hash(n))));
            let wrong = (1_000_000..1_010_000).filter(|&n| bloom.may_contain(hash(n))).count();
            assert!(bytes < 100 || wrong < 300, "{wrong} of 10000 at {bytes}");
        }
    }

    #[test]
    fn odd_lengths_are_refused() {
        assert!(Bloom::parse(vec![]).is_none());
        assert!(Bloom::parse(vec![0; 65]).is_none());
    }
}
