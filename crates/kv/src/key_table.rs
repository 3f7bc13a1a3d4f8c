//! A sorted table of keys, packed so that a search touches few cache lines: the index of a run
//! and the bounds of a level are both one of these.
//!
//! What all keys have in common is compared once; the eight bytes after it stand in a dense
//! array of numbers that is searched first, and whole keys only where those are equal.

#[derive(Default)]
pub(crate) struct KeyTable {
    bytes: Box<[u8]>,
    ends: Box<[u32]>,
    heads: Box<[u64]>,
    shared: usize,
}

fn head(rest: &[u8]) -> u64 {
    match rest.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

impl KeyTable {
    /// From ascending keys; `None` if they take more than 4 GiB.
    pub(crate) fn new<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Option<KeyTable> {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for key in keys {
            bytes.extend_from_slice(key);
            ends.push(u32::try_from(bytes.len()).ok()?);
        }
        let mut table = KeyTable { bytes: bytes.into(), ends: ends.into(), ..KeyTable::default() };
        if table.len() > 0 {
            let shared = |at: usize| {
                let pairs = table.key(0).iter().zip(table.key(at));
                pairs.take_while(|(a, b)| a == b).count()
            };
            table.shared = (0..table.len()).map(shared).min().unwrap_or(0);
            table.heads = (0..table.len()).map(|at| head(&table.key(at)[table.shared..])).collect();
        }
        Some(table)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * 4 + self.heads.len() * 8
    }

    fn key(&self, at: usize) -> &[u8] {
        let start = match at {
            0 => 0,
            n => self.ends[n - 1] as usize,
        };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// The first key at or above `key`; `len()` if there is none.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        let common = &self.bytes[..self.shared];
        match key[..key.len().min(self.shared)].cmp(common) {
            std::cmp::Ordering::Less => return 0,
            std::cmp::Ordering::Greater => return self.len(),
            std::cmp::Ordering::Equal => {}
        }
        let target = head(&key[self.shared..]);
        let mut low = self.heads.partition_point(|&head| head < target);
        if self.heads.get(low) != Some(&target) {
            return low;
        }
        let mut high = low + self.heads[low..].partition_point(|&head| head == target);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn finds_as_a_plain_search_does() {
        let mut rng = Rng::new(5);
        for round in 0..200u64 {
            let prefix = vec![b'p'; rng.below(12) as usize];
            let word = |rng: &mut Rng| {
                let mut key = prefix.clone();
                // Few different bytes, so that heads are often equal and keys are prefixes.
                key.extend((0..rng.below(14)).map(|_| rng.below(2) as u8));
                key
            };
            let mut keys: Vec<Vec<u8>> = (0..round % 40).map(|_| word(&mut rng)).collect();
            keys.sort();
            keys.dedup();
            let table = KeyTable::new(keys.iter().map(|key| &key[..])).unwrap();
            assert_eq!(table.len(), keys.len());
            for _ in 0..50 {
                let mut key = word(&mut rng);
                if rng.below(4) == 0 {
                    key.truncate(rng.below(8) as usize);
                }
                let expected = keys.partition_point(|other| *other < key);
                assert_eq!(table.find(&key), expected, "{key:?} in {keys:?}");
            }
        }
    }
}
