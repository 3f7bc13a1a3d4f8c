//! Reading the log back at the start.
//!
//! What was never synced may be missing or torn, and is cut off with everything after it. What
//! was synced must be there: if a later record, or the manifest, knows a position past the
//! first bad record to be durable, the start stops with the place of the damage.

use std::path::PathBuf;

use super::record::{self, RECORD_HEADER_BYTES};
use super::segment::{Beginning, FORMAT_VERSION, HEADER_BYTES, RECORDS_AT, Start, file_name, read_beginning};
use crate::batch::Malformed;
use crate::disk::Disk;
use crate::{KvError, Result};

/// What replay found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    /// Where the log goes on.
    pub(crate) end_lsn: u64,
    pub(crate) commits: u64,
    pub(crate) bytes: u64,
    pub(crate) torn_bytes: u64,
    /// Segments without anything to keep; to be removed.
    pub(crate) discarded: Vec<u64>,
    /// The segments that stay, ascending.
    pub(crate) segments: Vec<(u64, Start)>,
    /// The latest stamp in them.
    pub(crate) stamp: u64,
}

struct Opened {
    id: u64,
    path: PathBuf,
    bytes: Vec<u8>,
    salt: Option<u32>,
    start: Option<Start>,
}

impl Opened {
    fn read(disk: &dyn Disk, id: u64, beginning_only: bool) -> Result<Opened> {
        let name = file_name(id);
        let path = disk.path(&name);
        let io = |error| KvError::io(&path, "read", error);
        let file = disk.open(&name).map_err(io)?;
        let mut len = file.len().map_err(io)? as usize;
        if beginning_only {
            len = len.min(RECORDS_AT);
        }
        let mut bytes = vec![0; len];
        file.read_at(0, &mut bytes).map_err(io)?;
        // What is replayed will be built upon, so it must not vanish in a later power cut.
        if !beginning_only {
            file.sync().map_err(io)?;
        }
        let (salt, start) = match read_beginning(&bytes, id) {
            Beginning::Unfinished => (None, None),
            Beginning::Made { salt, start } => (Some(salt), start),
            Beginning::Damaged => {
                return Err(KvError::corrupt(&path, 0, "the log segment's header"));
            }
            Beginning::UnsupportedVersion(found) => {
                return Err(KvError::UnsupportedFormat { path, found, supported: FORMAT_VERSION });
            }
        };
        Ok(Opened { id, path, bytes, salt, start })
    }

    /// The highest position that records from `from` on know to be durable.
    fn evidence(&self, from: usize) -> u64 {
        match (self.salt, self.bytes.get(from..)) {
            (Some(salt), Some(bytes)) => record::durable_evidence(bytes, salt),
            _ => 0,
        }
    }
}

/// A commit found in the log.
pub(crate) struct Replayed<'a> {
    pub(crate) segment: u64,
    /// Where that segment starts.
    pub(crate) segment_lsn: u64,
    pub(crate) seq: u64,
    pub(crate) stamp: u64,
    /// The batch, without what was noted about it.
    pub(crate) payload: &'a [u8],
}

/// Calls `apply` for every commit in the segments `ids` (ascending), which start at
/// `base_lsn`. `durable_lsn` is what the manifest knows to be synced.
pub(crate) fn replay(
    disk: &dyn Disk,
    ids: &[u64],
    base_lsn: u64,
    durable_lsn: u64,
    mut apply: impl FnMut(Replayed<'_>) -> Result<(), Malformed>,
) -> Result<Replay> {
    let mut found = Replay { end_lsn: base_lsn, ..Replay::default() };
    let mut last_seq = 0;
    for (position, &id) in ids.iter().enumerate() {
        let segment = Opened::read(disk, id, false)?;
        let is_last = position + 1 == ids.len();
        // Where this segment ends, if the next one has come into use.
        let end = match ids.get(position + 1) {
            Some(&next) => Opened::read(disk, next, true)?.start.map(|start| start.lsn),
            None => None,
        };
        let mut at = HEADER_BYTES.min(segment.bytes.len());
        if let (Some(salt), Some(Start { lsn: base_lsn, stamp })) = (segment.salt, segment.start) {
            found.segments.push((id, Start { lsn: base_lsn, stamp }));
            found.stamp = found.stamp.max(stamp);
            if base_lsn != found.end_lsn {
                let what = format!("the log goes on at {base_lsn}, {} expected", found.end_lsn);
                return Err(KvError::corrupt(&segment.path, HEADER_BYTES as u64, what));
            }
            at = RECORDS_AT;
            while end.is_none_or(|end| found.end_lsn < end)
                && let Some((header, payload)) = record::read(&segment.bytes[at..], salt)
            {
                // Markers have no number.
                if header.seq != 0 {
                    if header.seq <= last_seq {
                        let what = "a commit out of order";
                        return Err(KvError::corrupt(&segment.path, at as u64, what));
                    }
                    last_seq = header.seq;
                    let (ops, _) = header.split(payload);
                    found.stamp = found.stamp.max(header.stamp);
                    let (seq, stamp) = (header.seq, header.stamp);
                    let commit = Replayed { segment: id, segment_lsn: base_lsn, seq, stamp, payload: ops };
                    apply(commit).map_err(|Malformed(offset)| {
                        let offset = (at + RECORD_HEADER_BYTES + offset) as u64;
                        let what = "a commit that does not parse";
                        KvError::corrupt(&segment.path, offset, what)
                    })?;
                    found.commits += 1;
                }
                let len = RECORD_HEADER_BYTES + payload.len();
                at += len;
                found.bytes += len as u64;
                found.end_lsn += len as u64;
            }
            // If the next segment does not say where it starts, the fault is there.
            let is_read_whole = end.is_none() && !is_last && at == segment.bytes.len();
            if end == Some(found.end_lsn) || is_read_whole {
                continue;
            }
        }
        let is_whole = is_last && at == segment.bytes.len() && durable_lsn <= found.end_lsn;
        if !is_whole || segment.start.is_none() {
            let later = &ids[position + 1..];
            cut(disk, &segment, at, later, durable_lsn, &mut found)?;
        }
        break;
    }
    if ids.is_empty() && durable_lsn > base_lsn {
        let path = disk.path("*.log");
        return Err(KvError::corrupt(&path, 0, "log files are missing"));
    }
    Ok(found)
}

/// Decides whether the bad record at `at` is a torn tail, and counts what is cut off.
fn cut(
    disk: &dyn Disk,
    segment: &Opened,
    at: usize,
    later: &[u64],
    durable_lsn: u64,
    found: &mut Replay,
) -> Result<()> {
    let mut evidence = durable_lsn.max(segment.evidence(at));
    found.torn_bytes += content(&segment.bytes[at..]);
    if segment.start.is_none() {
        found.discarded.push(segment.id);
    }
    for &id in later {
        let segment = Opened::read(disk, id, false)?;
        evidence = evidence.max(segment.evidence(HEADER_BYTES));
        let body = segment.bytes.get(HEADER_BYTES..).unwrap_or_default();
        found.torn_bytes += content(body);
        found.discarded.push(id);
    }
    if evidence > found.end_lsn {
        let what = "a log record that was once complete does not match its checksum";
        return Err(KvError::corrupt(&segment.path, at as u64, what));
    }
    Ok(())
}

/// Bytes up to the last one that is not zero: a hole is not worth a warning.
fn content(bytes: &[u8]) -> u64 {
    bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1)
}
