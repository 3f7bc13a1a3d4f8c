//! Merging sorted sources: memtables, overlapping runs, levels. The newest source that has a
//! key wins; the same key in older ones is passed over.
//!
//! Sources are kept sorted by their current key. As long as the winner's next key stays below
//! everybody else's, a step costs one comparison; with one source left it costs none.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::bytes::Bytes;
use crate::memtable::MemCursor;
use crate::past::{AsOf, PastCursor};
use crate::run::RunCursor;
use crate::{Direction, Result};

pub(crate) enum Source {
    Memory(MemCursor),
    Runs(RunCursor),
    /// Runs and past runs, as a reader of the past sees them.
    AsOf(Box<AsOf>),
    Past(Box<PastCursor>),
}

macro_rules! each {
    ($self:ident, $cursor:ident => $body:expr) => {
        match $self {
            Source::Memory($cursor) => $body,
            Source::Runs($cursor) => $body,
            Source::AsOf(as_of) => {
                let $cursor = &as_of.cursor;
                $body
            }
            Source::Past($cursor) => $body,
        }
    };
}

impl Source {
    #[inline]
    fn is_valid(&self) -> bool {
        each!(self, cursor => cursor.is_valid())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        each!(self, cursor => cursor.key())
    }

    #[inline]
    pub(crate) fn value(&self) -> Option<&[u8]> {
        match self {
            Source::Memory(cursor) => cursor.value(),
            Source::Runs(cursor) => cursor.value(),
            Source::AsOf(as_of) => as_of.cursor.value(),
            Source::Past(past) => past.cursor.value(),
        }
    }

    #[inline]
    fn is_tombstone(&self) -> bool {
        match self {
            Source::Memory(cursor) => cursor.value().is_none(),
            Source::Runs(cursor) => cursor.is_tombstone(),
            Source::AsOf(as_of) => as_of.cursor.is_tombstone(),
            Source::Past(past) => past.cursor.is_tombstone(),
        }
    }

    pub(crate) fn seq(&self) -> u64 {
        each!(self, cursor => cursor.seq())
    }

    fn value_owned(&self) -> Option<Bytes> {
        let (block, range) = match self {
            Source::Memory(cursor) => return cursor.value_owned().map(Bytes::from_memory),
            Source::Runs(cursor) => cursor.value_owned()?,
            Source::AsOf(as_of) => as_of.cursor.value_owned()?,
            Source::Past(past) => past.cursor.value_owned()?,
        };
        Some(Bytes::from_block(block, range))
    }

    #[inline]
    fn step(&mut self, direction: Direction) -> Result<()> {
        match (self, direction) {
            (Source::Memory(cursor), Direction::Forward) => cursor.next(),
            (Source::Memory(cursor), Direction::Reverse) => cursor.prev(),
            (Source::Runs(cursor), Direction::Forward) => cursor.next()?,
            (Source::Runs(cursor), Direction::Reverse) => cursor.prev()?,
            (Source::AsOf(cursor), Direction::Forward) => cursor.next()?,
            (Source::AsOf(cursor), Direction::Reverse) => cursor.prev()?,
            (Source::Past(cursor), Direction::Forward) => cursor.next()?,
            (Source::Past(cursor), Direction::Reverse) => cursor.prev()?,
        }
        Ok(())
    }

    fn seek(&mut self, to: &Place<'_>) -> Result<()> {
        match (self, to) {
            (Source::Memory(cursor), Place::First) => cursor.first(),
            (Source::Memory(cursor), Place::Last) => cursor.last(),
            (Source::Memory(cursor), Place::AtOrAbove(key)) => cursor.seek(key),
            (Source::Memory(cursor), Place::AtOrBelow(key)) => cursor.seek_back(key, true),
            (Source::Memory(cursor), Place::Below(key)) => cursor.seek_back(key, false),
            (Source::Runs(cursor), Place::First) => cursor.first()?,
            (Source::Runs(cursor), Place::Last) => cursor.last()?,
            (Source::Runs(cursor), Place::AtOrAbove(key)) => cursor.seek(key)?,
            (Source::Runs(cursor), Place::AtOrBelow(key)) => cursor.seek_back(key, true)?,
            (Source::Runs(cursor), Place::Below(key)) => cursor.seek_back(key, false)?,
            (Source::AsOf(cursor), Place::First) => cursor.first()?,
            (Source::AsOf(cursor), Place::Last) => cursor.last()?,
            (Source::AsOf(cursor), Place::AtOrAbove(key)) => cursor.seek(key)?,
            (Source::AsOf(cursor), Place::AtOrBelow(key)) => cursor.seek_back(key, true)?,
            (Source::AsOf(cursor), Place::Below(key)) => cursor.seek_back(key, false)?,
            (Source::Past(cursor), Place::First) => cursor.first()?,
            (Source::Past(cursor), Place::Last) => cursor.last()?,
            (Source::Past(cursor), Place::AtOrAbove(key)) => cursor.seek(key)?,
            (Source::Past(cursor), Place::AtOrBelow(key)) => cursor.seek_back(key, true)?,
            (Source::Past(cursor), Place::Below(key)) => cursor.seek_back(key, false)?,
        }
        Ok(())
    }
}

/// Where to go.
pub(crate) enum Place<'a> {
    First,
    Last,
    AtOrAbove(&'a [u8]),
    AtOrBelow(&'a [u8]),
    Below(&'a [u8]),
}

pub(crate) struct Merge {
    /// Newest first, except those of the past.
    sources: Vec<Source>,
    /// Of sources that show the same key the one with the newest version wins, wherever it stands.
    by_seq: bool,
    direction: Direction,
    /// Where the walk ends, in its direction.
    end: Bound<Box<[u8]>>,
    /// Sources that are somewhere within the end, sorted; the first is the current one.
    order: Vec<usize>,
    /// Whether the second source shows the same key as the first.
    is_tied: bool,
}

impl Merge {
    pub(crate) fn new(sources: Vec<Source>, direction: Direction, end: Bound<Box<[u8]>>) -> Merge {
        let order = Vec::with_capacity(sources.len());
        Merge { order, sources, by_seq: false, direction, end, is_tied: false }
    }

    /// For a reader of the past, whose sources are not in the order of age.
    pub(crate) fn by_seq(mut self) -> Merge {
        self.by_seq = true;
        self
    }

    /// The versions of the current key in the other sources, newest first.
    pub(crate) fn displaced(&self) -> impl Iterator<Item = &Source> {
        let others = if self.is_tied { &self.order[1..] } else { &[] };
        let key = self.key();
        others.iter().map(|&at| &self.sources[at]).take_while(move |source| source.key() == key)
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        !self.order.is_empty()
    }

    #[inline]
    fn current(&self) -> Option<&Source> {
        self.order.first().map(|&at| &self.sources[at])
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.current().map_or(&[], Source::key)
    }

    #[inline]
    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.current().and_then(Source::value)
    }

    pub(crate) fn value_owned(&self) -> Option<Bytes> {
        self.current().and_then(Source::value_owned)
    }

    pub(crate) fn seq(&self) -> u64 {
        self.current().map_or(0, Source::seq)
    }

    #[inline]
    pub(crate) fn is_tombstone(&self) -> bool {
        self.current().is_some_and(Source::is_tombstone)
    }

    pub(crate) fn seek(&mut self, to: &Place<'_>) -> Result<()> {
        self.order.clear();
        for at in 0..self.sources.len() {
            self.sources[at].seek(to)?;
            if self.is_within(at) {
                self.order.push(at);
            }
        }
        let mut order = std::mem::take(&mut self.order);
        order.sort_unstable_by(|&a, &b| self.compare(a, b).then_with(|| self.rank(a, b)));
        self.order = order;
        self.find_tie();
        Ok(())
    }

    #[inline]
    pub(crate) fn step(&mut self) -> Result<()> {
        let mut same = usize::from(self.is_valid());
        if self.is_tied {
            while same < self.order.len() && self.compare(self.order[0], self.order[same]) == Ordering::Equal {
                same += 1;
            }
        }
        for position in (0..same).rev() {
            let at = self.order[position];
            if let Err(error) = self.sources[at].step(self.direction) {
                self.order.clear();
                return Err(error);
            }
            self.sift(position);
        }
        Ok(())
    }

    /// Puts the source at `position` where its new key belongs among those after it. Whether the
    /// first two are tied is only found out for position 0, which is always the last to move.
    #[inline]
    fn sift(&mut self, position: usize) {
        let moved = self.order[position];
        if !self.is_within(moved) {
            self.order.remove(position);
            self.find_tie();
            return;
        }
        let mut to = position;
        let mut is_tied = false;
        while let Some(&next) = self.order.get(to + 1) {
            let order = self.compare(moved, next);
            is_tied = order == Ordering::Equal;
            if order == Ordering::Less || (is_tied && self.rank(moved, next) == Ordering::Less) {
                break;
            }
            self.order[to] = next;
            to += 1;
        }
        self.order[to] = moved;
        if to > 0 {
            self.find_tie();
        } else {
            self.is_tied = is_tied;
        }
    }

    fn find_tie(&mut self) {
        self.is_tied = match self.order[..] {
            [first, second, ..] => self.compare(first, second) == Ordering::Equal,
            _ => false,
        };
    }

    #[inline]
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let order = self.sources[a].key().cmp(self.sources[b].key());
        match self.direction {
            Direction::Forward => order,
            Direction::Reverse => order.reverse(),
        }
    }

    /// Which of two sources with the same key goes first.
    #[inline]
    fn rank(&self, a: usize, b: usize) -> Ordering {
        if self.by_seq {
            return self.sources[b].seq().cmp(&self.sources[a].seq()).then(a.cmp(&b));
        }
        a.cmp(&b)
    }

    #[inline]
    fn is_within(&self, at: usize) -> bool {
        let source = &self.sources[at];
        if !source.is_valid() {
            return false;
        }
        match (&self.end, self.direction) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(end), Direction::Forward) => *source.key() <= **end,
            (Bound::Excluded(end), Direction::Forward) => *source.key() < **end,
            (Bound::Included(end), Direction::Reverse) => *source.key() >= **end,
            (Bound::Excluded(end), Direction::Reverse) => *source.key() > **end,
        }
    }
}
