//! A cursor over a range of keys, in either direction, that lends what it stands on.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::bytes::Bytes;
use crate::merge::{Merge, Place};
use crate::{Direction, Result, tree};

/// Owned and `Send`: it keeps what it needs alive and can outlive its snapshot. No step
/// allocates; `key` and `value` are valid until the next move.
pub struct Scan {
    merge: Merge,
    direction: Direction,
    start: Bound<Box<[u8]>>,
    dropped: Arc<BTreeMap<u64, u64>>,
    seq: u64,
    is_started: bool,
    /// Deleted entries that it has passed, and how many it passes at most.
    deleted: u64,
    deleted_max: u64,
}

impl Scan {
    pub(crate) fn new(
        merge: Merge,
        direction: Direction,
        start: Bound<Box<[u8]>>,
        dropped: Arc<BTreeMap<u64, u64>>,
        seq: u64,
    ) -> Scan {
        Scan { merge, direction, start, dropped, seq, is_started: false, deleted: 0, deleted_max: u64::MAX }
    }

    /// For a reader who would rather not know than walk for long: after so many deleted entries there is none any more.
    pub fn pass_at_most(&mut self, deleted: u64) {
        self.deleted_max = deleted;
    }

    /// The deleted entries that it has passed.
    pub fn deleted(&self) -> u64 {
        self.deleted
    }

    /// Moves to the next entry (at first, to the first one). `false` at the end.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        if self.is_started {
            self.merge.step()?;
        } else {
            self.go_to_start()?;
        }
        self.settle()
    }

    /// Moves to the first entry at or past `key` in the scan's direction, forward or back, but
    /// never outside its bounds. `false` if there is none. `next` goes on from there.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let is_inside = match (&self.start, self.direction) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(start) | Bound::Excluded(start), Direction::Forward) => *key > **start,
            (Bound::Included(start) | Bound::Excluded(start), Direction::Reverse) => *key < **start,
        };
        if !is_inside {
            self.go_to_start()?;
            return self.settle();
        }
        self.is_started = true;
        self.merge.seek(&match self.direction {
            Direction::Forward => Place::AtOrAbove(key),
            Direction::Reverse => Place::AtOrBelow(key),
        })?;
        self.settle()
    }

    #[inline]
    pub fn key(&self) -> &[u8] {
        self.merge.key()
    }

    #[inline]
    pub fn value(&self) -> &[u8] {
        self.merge.value().unwrap_or_default()
    }

    /// The value, to be kept beyond the next move without copying it.
    pub fn value_bytes(&self) -> Bytes {
        self.merge.value_owned().unwrap_or_default()
    }

    fn go_to_start(&mut self) -> Result<()> {
        self.is_started = true;
        let place = match (&self.start, self.direction) {
            (Bound::Unbounded, Direction::Forward) => Place::First,
            (Bound::Unbounded, Direction::Reverse) => Place::Last,
            (Bound::Included(key) | Bound::Excluded(key), Direction::Forward) => Place::AtOrAbove(key),
            (Bound::Included(key), Direction::Reverse) => Place::AtOrBelow(key),
            (Bound::Excluded(key), Direction::Reverse) => Place::Below(key),
        };
        self.merge.seek(&place)?;
        if let (Bound::Excluded(start), Direction::Forward) = (&self.start, self.direction)
            && self.merge.is_valid()
            && self.merge.key() == &**start
        {
            self.merge.step()?;
        }
        Ok(())
    }

    /// From where the merge stands to the next entry that is neither deleted nor dropped.
    #[inline]
    fn settle(&mut self) -> Result<bool> {
        while self.merge.is_valid() {
            if self.merge.is_tombstone() {
                if self.deleted >= self.deleted_max {
                    return Ok(false);
                }
                self.deleted += 1;
                self.merge.step()?;
            } else if let Some(tree) = self.dropped_tree() {
                self.leave(tree)?;
            } else {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    fn dropped_tree(&self) -> Option<u64> {
        if self.dropped.is_empty() {
            return None;
        }
        let tree = tree::of(self.merge.key())?;
        let seq = self.dropped.get(&tree)?;
        (*seq <= self.seq).then_some(tree)
    }

    fn leave(&mut self, tree: u64) -> Result<()> {
        let end = tree::end(tree);
        let start = tree.to_be_bytes();
        match (self.direction, &end) {
            (Direction::Forward, Some(end)) => self.merge.seek(&Place::AtOrAbove(end)),
            // Above the last tree there is nothing but its own keys.
            (Direction::Forward, None) => self.merge.step(),
            (Direction::Reverse, _) => self.merge.seek(&Place::Below(&start)),
        }
    }
}
