//! Where each group is, by key: an open hash table over keys that lie one behind the other.

use super::hash::Seeded;

const FREE: u32 = u32::MAX;

pub(super) struct Places {
    /// As many as a power of two; each has the number of a group or is free.
    slots: Vec<u32>,
    /// Of each group.
    hashes: Vec<u64>,
    ends: Vec<usize>,
    keys: Vec<u8>,
    seed: Seeded,
}

impl Places {
    pub fn new() -> Places {
        Places { slots: vec![FREE; 16], hashes: Vec::new(), ends: Vec::new(), keys: Vec::new(), seed: Seeded::new() }
    }

    /// What makes the hashes of keys.
    pub fn seed(&self) -> Seeded {
        self.seed.clone()
    }

    pub fn key(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.keys[start..self.ends[place]]
    }

    #[inline]
    pub fn find(&self, key: &[u8], hash: u64) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let place = self.slots[at];
            if place == FREE {
                return None;
            }
            let place = place as usize;
            if self.hashes[place] == hash && self.key(place) == key {
                return Some(place);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a key that is not there; its group has the next number. False if there are too many.
    pub fn insert(&mut self, key: &[u8], hash: u64) -> bool {
        let Some(number) = u32::try_from(self.hashes.len()).ok().filter(|&number| number != FREE) else { return false };
        self.hashes.push(hash);
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
        if self.hashes.len() * 2 > self.slots.len() {
            self.slots = vec![FREE; self.slots.len() * 2];
            for place in 0..number {
                self.put(self.hashes[place as usize], place);
            }
        }
        self.put(hash, number);
        true
    }

    fn put(&mut self, hash: u64, place: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = place;
    }

    /// The groups in order of key.
    pub fn sorted(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.hashes.len()).collect();
        places.sort_unstable_by(|&a, &b| self.key(a).cmp(self.key(b)));
        places
    }

    pub fn clear(&mut self) {
        self.slots = vec![FREE; 16];
        self.hashes.clear();
        self.ends.clear();
        self.keys.clear();
    }
}
