//! A position in a memtable, seen from a snapshot: one entry per key, tombstones included.

use std::sync::Arc;

use super::node::Node;
use super::way::Way;
use super::{MemEntry, MemValue, Memtable};

/// So many versions of a key are passed one by one; a key with more is left by a search.
const STEPS_MAX: usize = 8;

/// Walks keys in either direction; of each key it shows the newest version up to `seq`.
pub(crate) struct MemCursor {
    table: Arc<Memtable>,
    seq: u64,
    node: Option<Node>,
}

// SAFETY: the node belongs to `table`, which the cursor holds, and is only read.
unsafe impl Send for MemCursor {}
// SAFETY: as above; `&MemCursor` only reads immutable parts of nodes.
unsafe impl Sync for MemCursor {}

impl MemCursor {
    pub(crate) fn new(table: Arc<Memtable>, seq: u64) -> MemCursor {
        MemCursor { table, seq, node: None }
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.node.is_some()
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.node.map_or(&[], Node::key)
    }

    pub(crate) fn seq(&self) -> u64 {
        self.node.map_or(0, Node::seq)
    }

    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.node.and_then(Node::value)
    }

    pub(crate) fn value_owned(&self) -> Option<MemValue> {
        let node = self.node?;
        let table = &*self.table;
        Some(MemValue::new(&self.table, &MemEntry { node, table }))
    }

    pub(crate) fn first(&mut self) {
        self.node = self.visible_forward(self.table.head.next(0));
    }

    pub(crate) fn last(&mut self) {
        self.node = self.visible_backward(self.table.last());
    }

    /// To the first key at or above `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.node = self.visible_forward(self.table.seek(key, self.seq));
    }

    /// As [`MemCursor::seek`] to a key above all that were looked for on this way.
    #[inline]
    pub(super) fn advance(&mut self, way: &mut Way, key: &[u8]) {
        self.node = self.visible_forward(way.advance(key, self.seq, 1));
    }

    /// To the last key below `key`, or at it if `inclusive`.
    pub(crate) fn seek_back(&mut self, key: &[u8], inclusive: bool) {
        if inclusive
            && let Some(node) = self.table.seek(key, self.seq)
            && node.key() == key
        {
            self.node = Some(node);
            return;
        }
        self.node = self.visible_backward(self.table.seek_below(key));
    }

    pub(crate) fn next(&mut self) {
        let Some(at) = self.node else { return };
        let key = at.key();
        let mut node = at.next(0);
        let mut steps = 0;
        while let Some(older) = node
            && older.key() == key
        {
            steps += 1;
            // Past all versions: none has the number 0.
            node = if steps < STEPS_MAX { older.next(0) } else { self.table.seek(key, 0) };
        }
        self.node = self.visible_forward(node);
    }

    pub(crate) fn prev(&mut self) {
        let Some(at) = self.node else { return };
        let key = at.key();
        // Usually the node before is of another key already.
        let before = match self.before(at) {
            Some(newer) if newer.key() == key => self.table.seek_below(key),
            other => other,
        };
        self.node = self.visible_backward(before);
    }

    fn before(&self, node: Node) -> Option<Node> {
        node.prev().filter(|&prev| prev != self.table.head)
    }

    /// The first node from here on that the snapshot may see. Going forward versions come
    /// newest first, so the first visible one of a key is the right one.
    fn visible_forward(&self, mut node: Option<Node>) -> Option<Node> {
        let mut steps = 0;
        while let Some(at) = node {
            if at.seq() <= self.seq {
                return Some(at);
            }
            steps += 1;
            node = if steps % STEPS_MAX > 0 { at.next(0) } else { self.table.seek(at.key(), self.seq) };
        }
        None
    }

    /// From the oldest version of a key, or one of a key that the snapshot does not see at all,
    /// to the right version of the nearest key that it sees.
    fn visible_backward(&self, mut node: Option<Node>) -> Option<Node> {
        while let Some(at) = node {
            let key = at.key();
            let newer = self.before(at).filter(|newer| newer.key() == key);
            if newer.is_none() && at.seq() <= self.seq {
                return Some(at);
            }
            if let Some(found) = self.table.seek(key, self.seq)
                && found.key() == key
            {
                return Some(found);
            }
            node = self.table.seek_below(key);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hash::hash64;
    use crate::memtable::ChunkPool;
    use crate::rng::Rng;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::{Acquire, Release};

    fn forward(cursor: &mut MemCursor) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut out = Vec::new();
        cursor.first();
        while cursor.is_valid() {
            out.push((cursor.key().to_vec(), cursor.value().map(<[u8]>::to_vec)));
            cursor.next();
        }
        out
    }

    fn backward(cursor: &mut MemCursor) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut out = Vec::new();
        cursor.last();
        while cursor.is_valid() {
            out.push((cursor.key().to_vec(), cursor.value().map(<[u8]>::to_vec)));
            cursor.prev();
        }
        out.reverse();
        out
    }

    /// What a snapshot at some commit shows: keys with their value or tombstone.
    type Seen = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

    #[test]
    fn every_snapshot_sees_its_versions() {
        let pool = Arc::new(ChunkPool::new(64 << 10));
        let mut writer = Memtable::create(&pool, 1, 0, 0);
        let mut rng = Rng::new(3);
        let mut model = Seen::new();
        let mut history = Vec::new();
        for seq in 1..=600u64 {
            // Two trees interleaved, one in order and one at random, as a collection with an
            // index would write.
            let tree = rng.below(2);
            let n = if tree == 0 { seq } else { rng.below(80) };
            let key = [tree.to_be_bytes(), n.to_be_bytes()].concat();
            let value = (rng.below(5) > 0).then(|| vec![seq as u8; rng.below(40) as usize]);
            writer.insert(&key, seq, value.as_deref());
            model.insert(key, value);
            history.push((seq, model.clone()));
        }
        for (seq, model) in history {
            let mut cursor = MemCursor::new(writer.table().clone(), seq);
            let expected: Vec<_> = model.clone().into_iter().collect();
            assert_eq!(forward(&mut cursor), expected, "forward at {seq}");
            assert_eq!(backward(&mut cursor), expected, "backward at {seq}");
            for _ in 0..5 {
                let key = [rng.below(2).to_be_bytes(), rng.below(90).to_be_bytes()].concat();
                cursor.seek(&key);
                let above = model.range(key.clone()..).next().map(|(k, _)| k.clone());
                assert_eq!(cursor.is_valid().then(|| cursor.key().to_vec()), above);
                cursor.seek_back(&key, true);
                let below = model.range(..=key.clone()).next_back();
                assert_eq!(cursor.is_valid().then(|| cursor.key().to_vec()), below.map(|(k, _)| k.clone()));
                cursor.seek_back(&key, false);
                let below = model.range(..key).next_back();
                assert_eq!(cursor.is_valid().then(|| cursor.key().to_vec()), below.map(|(k, _)| k.clone()));
            }
        }
    }

    const COMMITS: u64 = 100_000;

    #[test]
    fn a_reader_never_sees_past_its_snapshot_while_the_writer_writes() {
        let pool = Arc::new(ChunkPool::new(64 << 10));
        let mut writer = Memtable::create(&pool, 1, 0, 0);
        let table = writer.table().clone();
        let keys: [&[u8]; 3] = [b"a", b"b", b"c"];
        let visible = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for seq in 1..=COMMITS {
                    for key in keys {
                        writer.insert(key, seq, Some(&seq.to_be_bytes()));
                    }
                    visible.store(seq, Release);
                }
            });
            let mut rounds = 0u64;
            loop {
                let seq = visible.load(Acquire);
                let expected = (seq > 0).then(|| seq.to_be_bytes());
                for _ in 0..20 {
                    for key in keys {
                        let found = table.get(key, hash64(key), seq);
                        assert_eq!(found.and_then(|entry| entry.value()), expected.as_ref().map(|v| &v[..]));
                    }
                }
                let mut cursor = MemCursor::new(table.clone(), seq);
                let check = |cursor: &MemCursor| assert_eq!(cursor.value(), expected.as_ref().map(|v| &v[..]));
                cursor.seek(b"b");
                check(&cursor);
                cursor.next();
                check(&cursor);
                cursor.prev();
                check(&cursor);
                cursor.seek_back(b"b", true);
                check(&cursor);
                cursor.seek_back(b"c", false);
                check(&cursor);
                rounds += 1;
                if seq == COMMITS {
                    break;
                }
            }
            assert!(rounds > 10);
        });
    }

    #[test]
    fn of_two_inserts_with_one_number_the_later_wins() {
        let pool = Arc::new(ChunkPool::new(64 << 10));
        let mut writer = Memtable::create(&pool, 1, 0, 0);
        writer.insert(b"k", 1, Some(b"first"));
        writer.insert(b"k", 1, None);
        writer.insert(b"k", 1, Some(b"last"));
        let table = writer.table();
        assert_eq!(table.get(b"k", hash64(b"k"), 1).unwrap().value(), Some(&b"last"[..]));
        assert_eq!(table.all_entries().next().unwrap().value(), Some(&b"last"[..]));
        assert!(table.get(b"k", hash64(b"k"), 0).is_none());
    }

    #[test]
    fn values_of_any_size_survive() {
        let pool = Arc::new(ChunkPool::new(64 << 10));
        let mut writer = Memtable::create(&pool, 1, 0, 0);
        for n in 0..200usize {
            let value = vec![n as u8; n * 97];
            writer.insert(&n.to_be_bytes(), 1, Some(&value));
        }
        for n in 0..200usize {
            let key = n.to_be_bytes();
            let entry = writer.table().get(&key, hash64(&key), 1).unwrap();
            assert_eq!(entry.value().unwrap(), vec![n as u8; n * 97]);
        }
    }

    #[test]
    fn the_estimate_is_near_the_truth() {
        let pool = Arc::new(ChunkPool::new(1 << 20));
        let mut writer = Memtable::create(&pool, 1, 0, 0);
        for n in 0..10_000u64 {
            writer.insert(&n.to_be_bytes(), 1, Some(&[0; 100]));
        }
        let (low, high) = (2500u64.to_be_bytes(), 7500u64.to_be_bytes());
        let table = writer.table();
        let half = table.approximate_bytes(std::ops::Bound::Included(&low), std::ops::Bound::Excluded(&high));
        let all = table.bytes() as u64;
        assert!((all / 4..all).contains(&half), "{half} of {all}");
    }
}
