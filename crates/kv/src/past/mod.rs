//! The past: versions of keys that newer ones have displaced, kept for a while so that the database can be read as it was
//! at any commit since a floor.
//!
//! Memtables hold every version; the runs of the levels hold one version of a key each. What a flush or a compaction
//! would leave out goes to *past runs* instead, if it was still the newest version after the floor. Readers of the present
//! never look there and pay nothing. A reader of the past looks into memtables and levels for the newest version that is
//! old enough, and into the past runs for a version that was the newest then; of what it finds, the newest is right.
//!
//! A past run is a run whose entries are versions: their keys say which and of what (`VersionKey`), their number is that
//! of the commit which displaced the version, and a run's greatest number (`seq_max`) that of the last such commit. Once
//! the floor has reached it, nobody can need the run and it goes as a whole. Past runs are never merged.

mod cursor;
mod times;
mod writer;

use std::ops::Bound;
use std::sync::Arc;

pub(crate) use cursor::{AsOf, PastCursor};
pub(crate) use times::Times;
pub(crate) use writer::PastWriter;

use crate::run::Level;

/// More past runs than this are not kept, however small: a reader of the past looks into each.
const RUNS_MAX: usize = 512;
/// Ends a key; a zero within it is followed by 0xff, so that keys sort as they do by themselves.
const END: [u8; 2] = [0, 1];
const SEQ_BYTES: usize = 8;

/// The key of a version in a past run: that of which it is a version, and its number, newest first.
#[derive(Default)]
pub(crate) struct VersionKey(Vec<u8>);

impl VersionKey {
    /// The first version of `key` that is not newer than `seq` is at or after this.
    pub(crate) fn set(&mut self, key: &[u8], seq: u64) -> &[u8] {
        self.set_start(key);
        self.0.extend_from_slice(&(!seq).to_be_bytes());
        &self.0
    }

    /// Before every version of `key`.
    pub(crate) fn set_start(&mut self, key: &[u8]) -> &[u8] {
        self.0.clear();
        for part in key.split_inclusive(|&byte| byte == 0) {
            self.0.extend_from_slice(part);
            if part.last() == Some(&0) {
                self.0.push(0xff);
            }
        }
        self.0.extend_from_slice(&END);
        &self.0
    }

    /// After every version of `key`.
    pub(crate) fn set_end(&mut self, key: &[u8]) -> &[u8] {
        // No commit has the number 0.
        self.set(key, 0)
    }
}

/// Splits the key of a version; `None` if it is none.
pub(crate) fn split(version: &[u8], key: &mut Vec<u8>) -> Option<u64> {
    key.clear();
    let (escaped, seq) = version.split_last_chunk::<SEQ_BYTES>()?;
    let mut rest = escaped.strip_suffix(&END)?;
    while let Some(zero) = rest.iter().position(|&byte| byte == 0) {
        key.extend_from_slice(&rest[..=zero]);
        rest = rest[zero + 1..].strip_prefix(&[0xff])?;
    }
    key.extend_from_slice(rest);
    Some(!u64::from_be_bytes(*seq))
}

/// Whether a past run may have a version of a key within the bounds that was the newest at commit `at`.
pub(crate) fn may_show(run: &Level, lower: Bound<&[u8]>, upper: Bound<&[u8]>, at: u64) -> bool {
    let mut version = VersionKey::default();
    run.iter().any(|run| {
        let is_low = match upper {
            Bound::Included(key) | Bound::Excluded(key) => *run.meta.key_min <= *version.set_end(key),
            Bound::Unbounded => true,
        };
        let is_high = match lower {
            Bound::Included(key) | Bound::Excluded(key) => *run.meta.key_max >= *version.set_start(key),
            Bound::Unbounded => true,
        };
        is_low && is_high && run.meta.seq_max > at
    })
}

/// Which past runs stay, and the floor that this makes: the runs that nobody can need go, and the oldest while there is
/// more than `bytes_max`.
pub(crate) fn trim(mut runs: Vec<Arc<Level>>, floor: u64, bytes_max: u64) -> (Vec<Arc<Level>>, u64) {
    let ends = |run: &Arc<Level>| run.iter().map(|run| run.meta.seq_max).max().unwrap_or(0);
    let bytes = |run: &Arc<Level>| run.iter().map(|run| run.meta.bytes).sum::<u64>();
    let mut floor = floor;
    loop {
        runs.retain(|run| ends(run) > floor);
        let total: u64 = runs.iter().map(bytes).sum();
        if total <= bytes_max && runs.len() <= RUNS_MAX {
            return (runs, floor);
        }
        floor = runs.iter().map(ends).min().unwrap_or(floor);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn versions_sort_by_key_and_then_newest_first() {
        let mut rng = Rng::new(3);
        let mut all: Vec<(Vec<u8>, u64)> = (0..2000)
            .map(|_| {
                let key = (0..rng.below(6)).map(|_| [0, 1, 2, 0xfe, 0xff][rng.below(5) as usize]).collect();
                (key, 1 + rng.below(5))
            })
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        all.dedup();
        let mut made: Vec<Vec<u8>> = Vec::new();
        let mut found = Vec::new();
        for (key, seq) in &all {
            let version = VersionKey::default().set(key, *seq).to_vec();
            assert_eq!(split(&version, &mut found), Some(*seq));
            assert_eq!(found, *key);
            assert!(made.last().is_none_or(|last| *last < version), "{key:?} {seq}");
            assert!(VersionKey::default().set_start(key) < &version[..]);
            assert!(VersionKey::default().set_end(key) > &version[..]);
            made.push(version);
        }
    }

    #[test]
    fn what_is_no_version_is_not_taken_for_one() {
        let mut key = Vec::new();
        assert_eq!(split(b"short", &mut key), None);
        assert_eq!(split(b"a\0\x02........", &mut key), None);
        assert_eq!(split(b"a\0b\0\x01........", &mut key), None);
    }
}
