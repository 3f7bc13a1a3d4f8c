//! The way to a place in the list, kept: whoever goes through keys in ascending order goes on from the last place instead
//! of searching from the top. What lies between two places, and not what lies in the table, says how long that takes.

use super::node::{HEIGHT_MAX, Node};

/// For each level a node on it at or before the place, none after the one of the level below it. Nodes that come later
/// may lie between them and the place.
pub(super) struct Way {
    before: [Node; HEIGHT_MAX],
}

impl Way {
    /// To the very beginning.
    pub(super) fn new(head: Node) -> Way {
        Way { before: [head; HEIGHT_MAX] }
    }

    /// The last node before the place, or the head.
    pub(super) fn nearest(&self) -> Node {
        self.before[0]
    }

    /// The nodes before the place, from the lowest level up.
    pub(super) fn levels(&mut self) -> impl Iterator<Item = (usize, &mut Node)> {
        self.before.iter_mut().enumerate()
    }

    /// From the top to the predecessors of (key, seq), exact on every level. Gives the first node at or after it: the very
    /// one that was compared, since by the next look the writer may have put another in front of it.
    pub(super) fn search(&mut self, head: Node, key: &[u8], seq: u64) -> Option<Node> {
        let (mut node, mut next) = (head, None);
        for (level, before) in self.before.iter_mut().enumerate().rev() {
            (node, next) = walk(node, level, key, seq);
            *before = node;
        }
        next
    }

    /// As [`Way::search`] from the last place on, exact on the levels below `height`. The node before the last place must
    /// be before (key, seq).
    pub(super) fn advance(&mut self, key: &[u8], seq: u64, height: usize) -> Option<Node> {
        let next = self.before[0].next(0);
        if next.is_none_or(|next| !next.is_before(key, seq)) {
            for (level, before) in self.before.iter_mut().enumerate().take(height).skip(1) {
                *before = walk(*before, level, key, seq).0;
            }
            return next;
        }
        // Up to a level on which nothing lies in between, and down again.
        let is_between = |level: usize, node: Node| node.next(level).is_some_and(|next| next.is_before(key, seq));
        let mut top = 1;
        while top < HEIGHT_MAX && (top < height || is_between(top, self.before[top])) {
            top += 1;
        }
        let (mut from, mut next) = (None, None);
        for (level, before) in self.before.iter_mut().enumerate().take(top).rev() {
            let start = from.unwrap_or(*before);
            let node;
            (node, next) = walk(start, level, key, seq);
            if node != start {
                from = Some(node);
            }
            *before = node;
        }
        next
    }
}

/// The last node of a level before (key, seq), and the one after it.
fn walk(mut node: Node, level: usize, key: &[u8], seq: u64) -> (Node, Option<Node>) {
    loop {
        match node.next(level) {
            Some(next) if next.is_before(key, seq) => node = next,
            next => return (node, next),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memtable::{ChunkPool, Memtable};
    use crate::rng::Rng;
    use std::sync::Arc;

    fn key(rng: &mut Rng) -> Vec<u8> {
        // Keys around the sixteen bytes that are compared at once, many of them prefixes of others.
        let mut key = vec![0; 6 + rng.below(12) as usize];
        key.iter_mut().rev().take(3).for_each(|byte| *byte = rng.below(3) as u8);
        key
    }

    /// Going on from the last place leads where a search from the top does, on every level, while nodes keep coming.
    #[test]
    fn going_on_finds_what_a_search_finds() {
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let pool = Arc::new(ChunkPool::new(1 << 20));
            let mut writer = Memtable::create(&pool, seed, 0, 0);
            let head = writer.table().head;
            let (mut kept, mut top) = (Way::new(head), Way::new(head));
            let mut last: Option<(Vec<u8>, u64)> = None;
            for seq in 1..=400 {
                for _ in 0..1 + rng.below(6) {
                    writer.insert(&key(&mut rng), seq, None);
                }
                let (to, at) = (key(&mut rng), 1 + rng.below(seq));
                let goes_on = match &last {
                    Some((last, _)) => *last < to,
                    None => true,
                };
                let height = 1 + rng.below(HEIGHT_MAX as u64) as usize;
                let found = match goes_on {
                    true => kept.advance(&to, at, height),
                    false => kept.search(head, &to, at),
                };
                assert!(found == top.search(head, &to, at), "seed {seed}, {to:?} at {at}");
                assert!(kept.before[..height] == top.before[..height], "seed {seed}, {to:?} at {at}");
                last = Some((to, at));
            }
        }
    }

    /// The list is in order whatever order keys come in, as every search relies on.
    #[test]
    fn inserts_in_any_order_leave_every_level_in_order() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let pool = Arc::new(ChunkPool::new(1 << 20));
            let mut writer = Memtable::create(&pool, seed, 0, 0);
            let mut expected = Vec::new();
            for seq in 1..=60 {
                // Runs of ascending keys, as a commit of many writes has, over what earlier ones left.
                let mut keys: Vec<_> = (0..rng.below(30)).map(|_| key(&mut rng)).collect();
                if rng.below(4) > 0 {
                    keys.sort();
                }
                for key in keys {
                    writer.insert(&key, seq, Some(&seq.to_be_bytes()));
                    expected.push((key, std::cmp::Reverse(seq)));
                }
            }
            expected.sort();
            let head = writer.table().head;
            let level = |level: usize| {
                let mut next = head.next(level);
                std::iter::from_fn(move || {
                    let node = next?;
                    next = node.next(level);
                    Some(node)
                })
            };
            let all: Vec<_> = level(0).map(|node| (node.key().to_vec(), std::cmp::Reverse(node.seq()))).collect();
            assert_eq!(all, expected, "seed {seed}");
            for height in 1..HEIGHT_MAX {
                // Each level is the one below it with nodes left out.
                let mut below = level(height - 1);
                for node in level(height) {
                    assert!(below.any(|other| other == node), "seed {seed}, level {height}");
                }
            }
            let mut before = head;
            for node in level(0) {
                assert!(node.prev() == Some(before), "seed {seed}");
                before = node;
            }
        }
    }
}
