//! Identifiers made by the server: ObjectIds, UUIDs, cursor ids, seeds.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use espalier_value::ObjectId;

use crate::clock;

/// A keyed hash of a counter: the key comes from the operating system and never leaves the process, so that an
/// identifier tells nothing about the next one.
pub struct Ids {
    key: RandomState,
    counter: AtomicU64,
    /// The five bytes that tell this process from others in an ObjectId.
    process: [u8; 5],
    object_ids: AtomicU64,
}

impl Ids {
    pub fn new() -> Ids {
        let key = RandomState::new();
        let seed = key.hash_one(u64::MAX).to_le_bytes();
        let process = [seed[0], seed[1], seed[2], seed[3], seed[4]];
        let first = u64::from(u32::from_le_bytes([seed[5], seed[6], seed[7], 0]));
        Ids { key, counter: AtomicU64::new(0), process, object_ids: AtomicU64::new(first) }
    }

    pub fn random(&self) -> u64 {
        self.key.hash_one(self.counter.fetch_add(1, Ordering::Relaxed))
    }

    /// A cursor id: positive, because some clients print it as unsigned and some as signed.
    pub fn cursor(&self) -> i64 {
        ((self.random() >> 1) as i64).max(1)
    }

    /// A version 4 UUID.
    pub fn uuid(&self) -> [u8; 16] {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.random().to_le_bytes());
        id[8..].copy_from_slice(&self.random().to_le_bytes());
        id[6] = id[6] & 0x0f | 0x40;
        id[8] = id[8] & 0x3f | 0x80;
        id
    }

    pub fn object_id(&self) -> ObjectId {
        let seconds = u32::try_from(clock::now_ms() / 1000).unwrap_or(u32::MAX);
        ObjectId::from_parts(seconds, self.process, self.object_ids.fetch_add(1, Ordering::Relaxed) as u32)
    }
}

impl Default for Ids {
    fn default() -> Ids {
        Ids::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_keep_their_form() {
        let ids = Ids::new();
        let (a, b) = (ids.object_id(), ids.object_id());
        assert_ne!(a, b);
        assert_eq!(a.0[4..9], b.0[4..9]);
        assert_ne!(ids.cursor(), ids.cursor());
        assert!(ids.cursor() > 0);
        let uuid = ids.uuid();
        assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (4, 2));
    }
}
