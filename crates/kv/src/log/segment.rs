//! A log segment: one file with a header, the position it starts at, and records.
//!
//! The header is synced when the file is made, long before it is needed; the start position is
//! known only when the segment comes into use, so it is written with the first records.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::KvError;
use crate::{Result, varint::Reader};

pub(crate) const LOG_SUFFIX: &str = ".log";
const MAGIC: [u8; 8] = *b"ESPLOG\r\n";
pub(super) const FORMAT_VERSION: u32 = 2;
/// Magic, version, salt, segment id, checksum.
pub(super) const HEADER_BYTES: usize = 28;
/// Position, stamp and checksum.
const START_BYTES: usize = 20;
pub(super) const RECORDS_AT: usize = HEADER_BYTES + START_BYTES;

pub(crate) fn file_name(id: u64) -> String {
    format!("{id:016x}{LOG_SUFFIX}")
}

/// The id in a segment's file name.
pub(crate) fn segment_id(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(LOG_SUFFIX)?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// An open segment that is or will be appended to.
pub(crate) struct Segment {
    pub(crate) id: u64,
    /// Starts every record, so that bytes of another file are never taken for one.
    pub(super) salt: u32,
    file: Arc<dyn DiskFile>,
    path: PathBuf,
}

impl Segment {
    /// Creates the file; its name and header are durable on return.
    pub(crate) fn create(disk: &dyn Disk, id: u64) -> Result<Segment> {
        let name = file_name(id);
        let path = disk.path(&name);
        let io = |op| {
            let path = path.clone();
            move |error| KvError::io(&path, op, error)
        };
        let file = disk.create(&name).map_err(io("create"))?;
        let salt = RandomState::new().hash_one(id) as u32;
        file.append(&encode_header(salt, id)).map_err(io("write to"))?;
        file.sync().map_err(io("sync"))?;
        disk.sync_dir().map_err(io("sync the folder of"))?;
        Ok(Segment { id, salt, file, path })
    }

    pub(super) fn append(&self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes).map_err(|error| KvError::io(&self.path, "write to", error))
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync().map_err(|error| KvError::io(&self.path, "sync", error))
    }

    /// Nothing more will be appended. It is read only by a recovery or by who looks far back, so it leaves the
    /// memory to the segments after it.
    pub(super) fn set_cold(&self) {
        self.file.set_cold();
    }
}

fn encode_header(salt: u32, id: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&salt.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Where a segment goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// The position of its first record.
    pub(crate) lsn: u64,
    /// Every commit before it has at most this stamp, every commit in it a greater one.
    pub(crate) stamp: u64,
}

/// What is written in front of a segment's first record.
pub(super) fn encode_start(salt: u32, start: Start) -> [u8; START_BYTES] {
    let mut out = [0; START_BYTES];
    out[..8].copy_from_slice(&start.lsn.to_le_bytes());
    out[8..16].copy_from_slice(&start.stamp.to_le_bytes());
    out[16..].copy_from_slice(&start_crc(salt, start).to_le_bytes());
    out
}

fn start_crc(salt: u32, start: Start) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&start.lsn.to_le_bytes());
    hasher.update(&start.stamp.to_le_bytes());
    hasher.finalize()
}

/// What the beginning of a segment says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// The file was being made when the power went; nothing was ever in it.
    Unfinished,
    /// `start` is `None` if the segment never came into use, or its start is torn.
    Made {
        salt: u32,
        start: Option<Start>,
    },
    UnsupportedVersion(u32),
    Damaged,
}

pub(super) fn read_beginning(bytes: &[u8], id: u64) -> Beginning {
    if bytes.len() < HEADER_BYTES || (bytes.len() == HEADER_BYTES && bytes.iter().all(|&byte| byte == 0)) {
        return Beginning::Unfinished;
    }
    let mut reader = Reader::new(bytes);
    let parse = |reader: &mut Reader<'_>| {
        let magic = reader.take(MAGIC.len())?;
        let fields = (reader.u32()?, reader.u32()?, reader.u64()?);
        let covered = reader.position();
        let is_intact = magic == MAGIC && reader.u32()? == crc32fast::hash(&bytes[..covered]);
        is_intact.then_some(fields)
    };
    match parse(&mut reader) {
        Some((FORMAT_VERSION, salt, stored_id)) if stored_id == id => {
            let read =
                |reader: &mut Reader<'_>| Some((Start { lsn: reader.u64()?, stamp: reader.u64()? }, reader.u32()?));
            let start = read(&mut reader).filter(|&(start, crc)| crc == start_crc(salt, start)).map(|(start, _)| start);
            Beginning::Made { salt, start }
        }
        Some((version, ..)) if version != FORMAT_VERSION => Beginning::UnsupportedVersion(version),
        _ => Beginning::Damaged,
    }
}

/// The salt and start of a segment; `None` if it does not say.
pub(super) fn probe(file: &dyn DiskFile, id: u64) -> std::io::Result<Option<(u32, Start)>> {
    let mut bytes = vec![0; RECORDS_AT.min(usize::try_from(file.len()?).unwrap_or(usize::MAX))];
    file.read_at(0, &mut bytes)?;
    Ok(match read_beginning(&bytes, id) {
        Beginning::Made { salt, start: Some(start) } => Some((salt, start)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        assert_eq!(segment_id(&file_name(0xabc)), Some(0xabc));
        assert_eq!(segment_id("abc.log"), None);
        assert_eq!(segment_id("0000000000000abc.run"), None);
    }

    #[test]
    fn beginnings_round_trip_and_notice_damage() {
        let header = encode_header(7, 2);
        assert_eq!(header.len(), HEADER_BYTES);
        let made = |start| Beginning::Made { salt: 7, start };
        let start = Start { lsn: 99, stamp: 5 };
        assert_eq!(read_beginning(&header, 2), made(None));
        let good = [&header[..], &encode_start(7, start)].concat();
        assert_eq!(good.len(), RECORDS_AT);
        assert_eq!(read_beginning(&good, 2), made(Some(start)));
        assert_eq!(read_beginning(&good, 3), Beginning::Damaged);
        assert_eq!(read_beginning(&header[..9], 2), Beginning::Unfinished);
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let expected = match bit / 8 {
                0..HEADER_BYTES => Beginning::Damaged,
                _ => made(None),
            };
            assert_eq!(read_beginning(&bad, 2), expected, "bit {bit}");
        }
    }
}
