//! Reading the log as history: every durable commit after a stamp, in order, none twice, none left out.
//!
//! A reader holds no lock between calls and keeps nothing from going: if its place is pruned while it is behind, it is
//! told so.

use std::path::PathBuf;
use std::sync::Arc;

use super::record::{Header, RECORD_HEADER_BYTES};
use super::segment::{RECORDS_AT, file_name, probe};
use super::writer::Durable;
use crate::batch::{Entry, Ops};
use crate::disk::DiskFile;
use crate::engine::Engine;
use crate::{KvError, Result};

/// Bytes read at once.
const CHUNK_BYTES: usize = 128 << 10;

/// A reader of the log. See [`crate::Kv::history`].
pub struct History {
    engine: Arc<Engine>,
    /// Commits up to this stamp are not wanted.
    after: u64,
    /// The next record.
    lsn: u64,
    durable: Durable,
    segment: Option<Open>,
    /// Bytes of the segment; `lsn` is at `at`.
    buffer: Vec<u8>,
    at: usize,
}

struct Open {
    id: u64,
    salt: u32,
    base_lsn: u64,
    /// `None` while it is being written.
    end_lsn: Option<u64>,
    file: Arc<dyn DiskFile>,
    path: PathBuf,
}

/// A commit as history tells it.
pub struct Record<'h> {
    pub stamp: u64,
    pub seq: u64,
    ops: &'h [u8],
    pub annotation: &'h [u8],
}

impl<'h> Record<'h> {
    /// What the commit wrote, in the order it was put into the batch.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'h>> + use<'h> {
        // The checksum has been verified; what does not parse was not written by this program.
        Ops::new(self.ops).map_while(|op| op.ok()).map(Entry::from)
    }
}

impl History {
    pub(crate) fn open(engine: Arc<Engine>, after: u64) -> Result<History> {
        let Some(lsn) = engine.kept.after_stamp(after) else {
            return Err(KvError::HistoryLost { after, kept_after: engine.kept.floor_stamp() });
        };
        let durable = engine.log.durable();
        let mut history = History { engine, after, lsn, durable, segment: None, buffer: Vec::new(), at: 0 };
        // From here on nothing has to be skipped if everything durable is older.
        if after >= durable.stamp {
            history.lsn = durable.lsn.max(lsn);
        }
        Ok(history)
    }

    /// The next durable commit; `None` if there is none yet.
    pub fn read(&mut self) -> Result<Option<Record<'_>>> {
        let header = loop {
            let Some(header) = self.header()? else { return Ok(None) };
            if header.seq != 0 && header.stamp > self.after {
                break header;
            }
            self.skip(header.record_bytes());
        };
        if !self.fill(header.record_bytes())? {
            return Err(self.corrupt("a log record that is longer than the log"));
        }
        let start = self.at;
        let payload = start + RECORD_HEADER_BYTES..start + header.record_bytes();
        if crc32fast::hash(&self.buffer[payload.clone()]) != header.payload_crc {
            return Err(self.corrupt("a log record does not match its checksum"));
        }
        self.skip(header.record_bytes());
        self.after = header.stamp;
        let (ops, annotation) = header.split(&self.buffer[payload]);
        Ok(Some(Record { stamp: header.stamp, seq: header.seq, ops, annotation }))
    }

    /// Every commit up to this stamp has been returned by `read`, or was not wanted.
    pub fn stamp(&self) -> u64 {
        if self.lsn >= self.durable.lsn { self.after.max(self.durable.stamp) } else { self.after }
    }

    /// The header of the next record; `None` at the durable end.
    fn header(&mut self) -> Result<Option<Header>> {
        if !self.fill(RECORD_HEADER_BYTES)? {
            return Ok(None);
        }
        let salt = self.segment.as_ref().map_or(0, |segment| segment.salt);
        let header = self.buffer[self.at..].first_chunk().and_then(|bytes| Header::decode(bytes, salt));
        header.map(Some).ok_or_else(|| self.corrupt("not a log record"))
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        self.lsn += bytes as u64;
    }

    /// Makes `need` bytes from `lsn` on available, in one segment; false at the durable end.
    fn fill(&mut self, need: usize) -> Result<bool> {
        if self.buffer.len().saturating_sub(self.at) >= need {
            return Ok(true);
        }
        if self.lsn >= self.durable.lsn {
            self.durable = self.engine.log.durable();
            if self.lsn >= self.durable.lsn {
                return Ok(false);
            }
            // It may have come to its end meanwhile.
            if self.segment.as_ref().is_some_and(|segment| segment.end_lsn.is_none()) {
                self.locate()?;
            }
        }
        if self.segment.as_ref().is_none_or(|segment| segment.end_lsn.is_some_and(|end| self.lsn >= end)) {
            self.locate()?;
        }
        let Some(segment) = &self.segment else { return Ok(false) };
        let end = segment.end_lsn.map_or(self.durable.lsn, |end| end.min(self.durable.lsn));
        // Skipping may have led past what was read.
        self.buffer.drain(..self.at.min(self.buffer.len()));
        self.at = 0;
        let from = self.lsn + self.buffer.len() as u64;
        let left = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX);
        let missing = need.saturating_sub(self.buffer.len());
        if missing > left {
            return Err(self.corrupt("a log record that is cut off"));
        }
        let begin = self.buffer.len();
        self.buffer.resize(begin + missing.max(CHUNK_BYTES).min(left), 0);
        let offset = RECORDS_AT as u64 + (from - segment.base_lsn);
        let read = segment.file.read_at(offset, &mut self.buffer[begin..]);
        read.map_err(|error| KvError::io(&segment.path, "read", error))?;
        Ok(true)
    }

    /// Opens the segment that `lsn` is in.
    fn locate(&mut self) -> Result<()> {
        let engine = &self.engine;
        let lost = |engine: &Engine| KvError::HistoryLost { after: self.after, kept_after: engine.kept.floor_stamp() };
        let Some(located) = engine.kept.at_lsn(self.lsn) else { return Err(lost(engine)) };
        if let Some(open) = &mut self.segment
            && open.id == located.segment.id
        {
            open.end_lsn = located.end_lsn;
            return Ok(());
        }
        let id = located.segment.id;
        let path = engine.disk.path(&file_name(id));
        let opened = engine.disk.open(&file_name(id)).and_then(|file| Ok((probe(&*file, id)?, file)));
        let (begins, file) = match opened {
            Ok(opened) => opened,
            // Pruned between looking and opening.
            Err(_) if engine.kept.at_lsn(self.lsn).is_none() => return Err(lost(engine)),
            Err(error) => return Err(KvError::io(&path, "open", error)),
        };
        let Some((salt, start)) = begins else {
            return Err(KvError::corrupt(&path, 0, "the log segment's header"));
        };
        self.buffer.clear();
        self.at = 0;
        self.segment = Some(Open { id, salt, base_lsn: start.lsn, end_lsn: located.end_lsn, file, path });
        Ok(())
    }

    fn corrupt(&self, what: &str) -> KvError {
        match &self.segment {
            Some(segment) => {
                let offset = RECORDS_AT as u64 + (self.lsn - segment.base_lsn);
                KvError::corrupt(&segment.path, offset, what)
            }
            None => KvError::corrupt(&self.engine.disk.path("*.log"), 0, what),
        }
    }
}
