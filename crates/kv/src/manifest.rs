//! The manifest: which files make up the database. Small, and replaced as a whole: written
//! beside, synced, renamed, so that there is always one complete version.

use crate::disk::Disk;
use crate::options::LEVELS_MAX;
use crate::past::Times;
use crate::run::RunMeta;
use crate::varint::{self, Reader};
use crate::{KvError, Result};

pub(crate) const MANIFEST_NAME: &str = "MANIFEST";
pub(crate) const MANIFEST_TEMP_NAME: &str = "MANIFEST.tmp";
const MAGIC: [u8; 8] = *b"ESPMAN\r\n";
const FORMAT_VERSION: u32 = 3;
/// The same without the past.
const FORMAT_WITHOUT_PAST: u32 = 2;
/// Magic, version, checksum.
const HEADER_BYTES: usize = 16;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Ids below this are taken, by runs and log segments alike.
    pub(crate) next_file_id: u64,
    /// Every commit up to here is in the runs.
    pub(crate) flushed_seq: u64,
    /// The first log segment still needed, and the position it starts at.
    pub(crate) first_segment: u64,
    pub(crate) first_lsn: u64,
    /// The log was synced at least up to here.
    pub(crate) durable_lsn: u64,
    /// The newest tombstone that compaction has removed.
    pub(crate) forgotten_seq: u64,
    /// No commit before had a greater stamp.
    pub(crate) stamp: u64,
    /// Dropped trees that may still have keys in the runs, with the commit that dropped them.
    pub(crate) dropped: Vec<(u64, u64)>,
    /// Level 0 newest first, the others in key order.
    pub(crate) levels: Vec<Vec<RunMeta>>,
    /// The first commit whose state can still be read.
    pub(crate) floor: u64,
    /// Runs with versions from then on.
    pub(crate) past: Vec<RunMeta>,
    /// When the commits since were made; what is in the log is known from there.
    pub(crate) times: Times,
}

impl Manifest {
    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for number in [
            self.next_file_id,
            self.flushed_seq,
            self.first_segment,
            self.first_lsn,
            self.durable_lsn,
            self.forgotten_seq,
            self.stamp,
        ] {
            varint::put(&mut body, number);
        }
        varint::put(&mut body, self.dropped.len() as u64);
        for &(tree, seq) in &self.dropped {
            varint::put(&mut body, tree);
            varint::put(&mut body, seq);
        }
        varint::put(&mut body, self.levels.len() as u64);
        for level in &self.levels {
            varint::put(&mut body, level.len() as u64);
            for run in level {
                run.encode(&mut body);
            }
        }
        varint::put(&mut body, self.floor);
        varint::put(&mut body, self.past.len() as u64);
        self.past.iter().for_each(|run| run.encode(&mut body));
        self.times.encode(&mut body);
        let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&checksum(FORMAT_VERSION, &body).to_le_bytes());
        out.extend_from_slice(&body);
        out
    }

    fn decode_body(body: &[u8], version: u32) -> Option<Manifest> {
        let mut reader = Reader::new(body);
        let mut manifest = Manifest {
            next_file_id: reader.varint()?,
            flushed_seq: reader.varint()?,
            first_segment: reader.varint()?,
            first_lsn: reader.varint()?,
            durable_lsn: reader.varint()?,
            forgotten_seq: reader.varint()?,
            stamp: reader.varint()?,
            ..Manifest::default()
        };
        for _ in 0..reader.varint()? {
            manifest.dropped.push((reader.varint()?, reader.varint()?));
        }
        let levels = reader.varint()?;
        if levels > LEVELS_MAX as u64 + 1 {
            return None;
        }
        for _ in 0..levels {
            let mut level = Vec::new();
            for _ in 0..reader.varint()? {
                level.push(RunMeta::decode(&mut reader)?);
            }
            manifest.levels.push(level);
        }
        if version == FORMAT_WITHOUT_PAST {
            manifest.floor = manifest.flushed_seq;
        } else {
            manifest.floor = reader.varint()?;
            for _ in 0..reader.varint()? {
                manifest.past.push(RunMeta::decode(&mut reader)?);
            }
            manifest.times = Times::decode(&mut reader)?;
        }
        reader.is_empty().then_some(manifest)
    }

    /// `None` if the folder has no manifest.
    pub(crate) fn load(disk: &dyn Disk) -> Result<Option<Manifest>> {
        let path = disk.path(MANIFEST_NAME);
        let io = |error| KvError::io(&path, "read", error);
        let file = match disk.open(MANIFEST_NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        let mut bytes = vec![0; file.len().map_err(io)? as usize];
        file.read_at(0, &mut bytes).map_err(io)?;
        let mut reader = Reader::new(&bytes);
        let header = || -> Option<(u32, u32)> {
            (reader.take(MAGIC.len())? == MAGIC).then_some(())?;
            Some((reader.u32()?, reader.u32()?))
        };
        let mut header = header;
        let Some((version, crc)) = header() else {
            return Err(KvError::corrupt(&path, 0, "not a manifest"));
        };
        let body = &bytes[HEADER_BYTES..];
        if checksum(version, body) != crc {
            let what = "the manifest does not match its checksum";
            return Err(KvError::corrupt(&path, 0, what));
        }
        if ![FORMAT_VERSION, FORMAT_WITHOUT_PAST].contains(&version) {
            return Err(KvError::UnsupportedFormat { path, found: version, supported: FORMAT_VERSION });
        }
        match Manifest::decode_body(body, version) {
            Some(manifest) => Ok(Some(manifest)),
            None => Err(KvError::corrupt(&path, 0, "the manifest does not parse")),
        }
    }

    /// Takes the place of the manifest on disk, durably, or leaves the old one.
    pub(crate) fn store(&self, disk: &dyn Disk) -> Result<()> {
        let path = disk.path(MANIFEST_NAME);
        let io = |op| {
            let path = path.clone();
            move |error| KvError::io(&path, op, error)
        };
        let file = disk.create(MANIFEST_TEMP_NAME).map_err(io("create"))?;
        file.append(&self.encode()).map_err(io("write to"))?;
        file.sync().map_err(io("sync"))?;
        disk.rename(MANIFEST_TEMP_NAME, MANIFEST_NAME).map_err(io("replace"))?;
        disk.sync_dir().map_err(io("sync the folder of"))
    }
}

/// Covers the version too: a flipped bit in it must not look like another version.
fn checksum(version: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&version.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::disk::MemDisk;

    fn sample() -> Manifest {
        let run = RunMeta {
            id: 3,
            bytes: 1000,
            entries: 10,
            tombstones: 1,
            seq_max: 77,
            key_min: b"a".as_slice().into(),
            key_max: b"z".as_slice().into(),
        };
        Manifest {
            next_file_id: 9,
            flushed_seq: 77,
            first_segment: 4,
            first_lsn: 5000,
            durable_lsn: 6000,
            forgotten_seq: 5,
            stamp: 8 << 32,
            dropped: vec![(2, 70)],
            levels: vec![vec![run.clone()], vec![], vec![run.clone()]],
            floor: 60,
            past: vec![run],
            times: {
                let mut times = Times::default();
                (60..70).for_each(|seq| times.note(seq / 3 * 1000 + seq, seq));
                times
            },
        }
    }

    #[test]
    fn one_without_the_past_can_be_read() {
        let disk = MemDisk::new();
        let old = Manifest { past: Vec::new(), times: Times::default(), floor: 0, ..sample() };
        let bytes = old.encode();
        // No past runs, no times: three zeros at the end.
        let body = &bytes[HEADER_BYTES..bytes.len() - 3];
        let header = [&MAGIC[..], &2u32.to_le_bytes(), &checksum(2, body).to_le_bytes()].concat();
        disk.create(MANIFEST_NAME).unwrap().append(&[&header, body].concat()).unwrap();
        assert_eq!(Manifest::load(&disk).unwrap(), Some(Manifest { floor: old.flushed_seq, ..old }));
    }

    #[test]
    fn round_trip() {
        let disk = MemDisk::new();
        assert_eq!(Manifest::load(&disk).unwrap(), None);
        sample().store(&disk).unwrap();
        assert_eq!(Manifest::load(&disk).unwrap(), Some(sample()));
        assert_eq!(disk.list().unwrap(), [MANIFEST_NAME]);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let disk = MemDisk::new();
        sample().store(&disk).unwrap();
        let len = disk.open(MANIFEST_NAME).unwrap().len().unwrap();
        for offset in 0..len {
            for bit in 0..8 {
                disk.damage(MANIFEST_NAME, offset, 1 << bit);
                assert!(matches!(Manifest::load(&disk), Err(KvError::Corrupt { .. })));
                disk.damage(MANIFEST_NAME, offset, 1 << bit);
            }
        }
    }

    #[test]
    fn another_version_is_named() {
        let disk = MemDisk::new();
        let mut bytes = sample().encode();
        bytes[8] = 4;
        let crc = checksum(4, &bytes[HEADER_BYTES..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        disk.create(MANIFEST_NAME).unwrap().append(&bytes).unwrap();
        assert!(matches!(Manifest::load(&disk), Err(KvError::UnsupportedFormat { found: 4, .. })));
    }
}
