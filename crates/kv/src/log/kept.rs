//! Which log segments there are: those that recovery needs, and before them those kept as history.
//!
//! History is bounded by bytes and by age. It goes from its oldest end in whole segments, so that what is left is always
//! everything since some commit.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use super::segment::{RECORDS_AT, Start, file_name, probe};
use crate::disk::Disk;
use crate::sync::lock;
use crate::{KvError, Result};

/// Every start begins a segment, however little came into the last one: a server that is started often must not keep a
/// history of very many small files.
pub(crate) const SEGMENTS_MAX: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptSegment {
    pub(crate) id: u64,
    pub(crate) start: Start,
}

/// The segments on disk, oldest first; the last is the one being written.
pub(crate) struct Kept {
    segments: Mutex<VecDeque<KeptSegment>>,
}

/// Where a position lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) segment: KeptSegment,
    /// Where the segment ends; `None` for the one being written.
    pub(crate) end_lsn: Option<u64>,
}

impl Kept {
    pub(crate) fn new(segments: VecDeque<KeptSegment>) -> Kept {
        Kept { segments: Mutex::new(segments) }
    }

    pub(crate) fn push(&self, id: u64, start: Start) {
        lock(&self.segments).push_back(KeptSegment { id, start });
    }

    /// Everything that was committed with a greater stamp is still there.
    pub(crate) fn floor_stamp(&self) -> u64 {
        lock(&self.segments).front().map_or(0, |segment| segment.start.stamp)
    }

    /// Bytes of all segments before the one being written.
    pub(crate) fn bytes(&self) -> u64 {
        let segments = lock(&self.segments);
        match (segments.front(), segments.back()) {
            (Some(first), Some(last)) => last.start.lsn - first.start.lsn,
            _ => 0,
        }
    }

    /// The segment with the record at this position; `None` if that is gone.
    pub(crate) fn at_lsn(&self, lsn: u64) -> Option<Located> {
        let segments = lock(&self.segments);
        let after = segments.partition_point(|segment| segment.start.lsn <= lsn);
        let segment = *segments.get(after.checked_sub(1)?)?;
        Some(Located { segment, end_lsn: segments.get(after).map(|next| next.start.lsn) })
    }

    /// Where to look for the first commit with a greater stamp; `None` if that may be gone.
    pub(crate) fn after_stamp(&self, stamp: u64) -> Option<u64> {
        let segments = lock(&self.segments);
        let after = segments.partition_point(|segment| segment.start.stamp <= stamp);
        Some(segments.get(after.checked_sub(1)?)?.start.lsn)
    }

    /// Takes out the segments before `first_needed` that are over the bounds; their files can go.
    pub(crate) fn prune(&self, first_needed: u64, bytes_max: u64, age_max: Duration, now_seconds: u64) -> Vec<u64> {
        let mut removed = Vec::new();
        let mut segments = lock(&self.segments);
        while let (Some(first), Some(second)) = (segments.front(), segments.get(1)) {
            let needed = segments.iter().find(|segment| segment.id >= first_needed);
            let end_lsn = needed.map_or(first.start.lsn, |segment| segment.start.lsn);
            let is_large = end_lsn.saturating_sub(first.start.lsn) > bytes_max;
            let age = now_seconds.saturating_sub(second.start.stamp >> 32);
            let is_many = segments.len() > SEGMENTS_MAX;
            if first.id >= first_needed || !(is_large || is_many || age > age_max.as_secs()) {
                break;
            }
            removed.push(first.id);
            segments.pop_front();
        }
        removed
    }
}

/// At the start: which of the segments `ids` (ascending), all older than `next`, lead up to it without a gap. A power cut
/// may have brought back some that were removed, and history with a hole in it is none.
pub(crate) fn chain(disk: &dyn Disk, ids: &[u64], next: Start) -> Result<VecDeque<KeptSegment>> {
    let mut found = VecDeque::new();
    let mut next = next;
    for &id in ids.iter().rev() {
        let path = disk.path(&file_name(id));
        let io = |error| KvError::io(&path, "read", error);
        let file = disk.open(&file_name(id)).map_err(io)?;
        let bytes = file.len().map_err(io)?;
        let Some((_, start)) = probe(&*file, id).map_err(io)? else { break };
        let records = bytes.saturating_sub(RECORDS_AT as u64);
        let is_joined = next.lsn.checked_sub(start.lsn).is_some_and(|length| length <= records);
        if !is_joined || start.stamp > next.stamp {
            break;
        }
        found.push_front(KeptSegment { id, start });
        next = start;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn kept() -> Kept {
        let start = |lsn, stamp: u64| Start { lsn, stamp: stamp << 32 };
        Kept::new(
            [(3, start(0, 0)), (5, start(100, 10)), (9, start(250, 20)), (11, start(300, 30))].map(segment).into(),
        )
    }

    fn segment((id, start): (u64, Start)) -> KeptSegment {
        KeptSegment { id, start }
    }

    #[test]
    fn positions_are_found() {
        let kept = kept();
        let at = |lsn| kept.at_lsn(lsn).map(|at| (at.segment.id, at.end_lsn));
        assert_eq!(at(0), Some((3, Some(100))));
        assert_eq!(at(249), Some((5, Some(250))));
        assert_eq!(at(250), Some((9, Some(300))));
        assert_eq!(at(9999), Some((11, None)));
        assert_eq!(kept.after_stamp(10 << 32), Some(100));
        assert_eq!(kept.after_stamp((10 << 32) - 1), Some(0));
    }

    #[test]
    fn bounds_are_kept_from_the_oldest_end() {
        let age = Duration::from_secs(1000);
        let by_bytes = kept();
        assert_eq!(by_bytes.prune(11, 200, age, 40), [3]);
        assert_eq!((by_bytes.floor_stamp(), by_bytes.bytes()), (10 << 32, 200));
        assert_eq!((by_bytes.at_lsn(99), by_bytes.after_stamp(9 << 32)), (None, None));
        // Age counts from a segment's last commit: what begins the next one.
        assert_eq!(kept().prune(11, 9999, Duration::from_secs(15), 36), [3, 5]);
        // What recovery needs stays, whatever the bounds.
        assert_eq!(kept().prune(5, 0, Duration::ZERO, 9999), [3]);
        assert_eq!(kept().prune(11, 0, Duration::ZERO, 9999), [3, 5, 9]);
    }
}
