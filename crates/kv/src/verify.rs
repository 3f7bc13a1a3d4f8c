//! Checking everything on disk: every block's checksum, the order of keys within and between
//! runs, and that each run holds what its description says.

use std::sync::Arc;

use crate::cache::Use;
use crate::run::{Level, Run, RunCursor};
use crate::snapshot::Snapshot;
use crate::{KvError, Result};

/// How far a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyProgress {
    pub bytes_done: u64,
    pub bytes_total: u64,
}

/// What a check found.
#[derive(Debug, Default)]
pub struct VerifyReport {
    pub runs: u64,
    pub entries: u64,
    pub bytes: u64,
    /// What is wrong, one for each damaged run.
    pub problems: Vec<KvError>,
    /// Stopped before the end.
    pub is_partial: bool,
}

pub(crate) fn verify(snapshot: &Snapshot, mut progress: impl FnMut(VerifyProgress) -> bool) -> Result<VerifyReport> {
    let version = &snapshot.state.version;
    let runs = || version.runs().map(|(_, run)| run).chain(version.past().iter().flat_map(|run| run.iter()));
    let bytes_total = runs().map(|run| run.meta.bytes).sum();
    let mut report = VerifyReport::default();
    for (level, runs) in version.levels().iter().enumerate() {
        for pair in runs.windows(2) {
            if level > 0 && pair[0].meta.key_max >= pair[1].meta.key_min {
                let what = "overlaps its neighbour";
                let path = pair[1].path();
                report.problems.push(KvError::corrupt(path, 0, what));
            }
        }
    }
    for run in runs() {
        let bytes_done = report.bytes;
        if !progress(VerifyProgress { bytes_done, bytes_total }) {
            report.is_partial = true;
            return Ok(report);
        }
        match check(run) {
            Ok(entries) => report.entries += entries,
            Err(problem @ KvError::Corrupt { .. }) => report.problems.push(problem),
            Err(error) => return Err(error),
        }
        report.runs += 1;
        report.bytes += run.meta.bytes;
    }
    progress(VerifyProgress { bytes_done: bytes_total, bytes_total });
    Ok(report)
}

/// Walks a run; returns how many entries it has.
fn check(run: &Arc<Run>) -> Result<u64> {
    let wrong = |what: &str| KvError::corrupt(run.path(), 0, what);
    let mut cursor = RunCursor::new(Level::new(vec![run.clone()]), 0..1, Use::Once);
    cursor.first()?;
    if cursor.key() != &*run.meta.key_min {
        return Err(wrong("the first key is not the one recorded"));
    }
    let (mut entries, mut tombstones) = (0, 0);
    let mut last: Vec<u8> = Vec::new();
    while cursor.is_valid() {
        if entries > 0 && *cursor.key() <= *last {
            return Err(wrong("keys out of order"));
        }
        if cursor.seq() > run.meta.seq_max {
            return Err(wrong("an entry newer than recorded"));
        }
        last.clear();
        last.extend_from_slice(cursor.key());
        entries += 1;
        tombstones += u64::from(cursor.is_tombstone());
        cursor.next()?;
    }
    if *last != *run.meta.key_max {
        return Err(wrong("the last key is not the one recorded"));
    }
    if (entries, tombstones) != (run.meta.entries, run.meta.tombstones) {
        return Err(wrong("the number of entries is not the one recorded"));
    }
    Ok(entries)
}
