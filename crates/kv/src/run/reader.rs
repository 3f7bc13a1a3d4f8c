//! An open run: its index and filter in memory, its blocks read through the cache.

use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::block::Block;
use super::bloom::Bloom;
use super::graveyard::Graveyard;
use super::index::Index;
use super::{FOOTER_BYTES, FORMAT_VERSION, MAGIC, RunMeta, file_name, frame};
use crate::Result;
use crate::cache::{Cache, Slots, Use};
use crate::disk::{Disk, DiskFile};
use crate::error::KvError;
use crate::varint::Reader;

/// What all runs of one engine share.
#[derive(Clone)]
pub(crate) struct RunContext {
    pub(crate) cache: Arc<Cache>,
    pub(crate) graveyard: Arc<Graveyard>,
}

pub(crate) struct Run {
    pub(crate) meta: RunMeta,
    index: Index,
    bloom: Bloom,
    slots: Arc<Slots>,
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    pub(super) context: RunContext,
    is_obsolete: AtomicBool,
}

/// An entry found in a run.
pub(crate) struct Found {
    pub(crate) block: Arc<Block>,
    pub(crate) seq: u64,
    /// `None` for a deleted key.
    pub(crate) value: Option<(usize, usize)>,
}

impl Run {
    /// Reads footer, properties, index and filter and checks them against the manifest.
    pub(crate) fn open(disk: &dyn Disk, meta: &RunMeta, context: &RunContext) -> Result<Run> {
        let name = file_name(meta.id);
        let path = disk.path(&name);
        let io = |op| {
            let path = path.clone();
            move |error| KvError::io(&path, op, error)
        };
        let file = disk.open(&name).map_err(io("open"))?;
        let len = file.len().map_err(io("read"))?;
        let corrupt = |offset: u64, what: &str| KvError::corrupt(&path, offset, what);
        if len != meta.bytes || len < FOOTER_BYTES as u64 {
            let what = format!("{len} bytes long, {} expected", meta.bytes);
            return Err(corrupt(len, &what));
        }
        let footer_at = len - FOOTER_BYTES as u64;
        let mut footer = [0; FOOTER_BYTES];
        file.read_at(footer_at, &mut footer).map_err(io("read"))?;
        let sections = parse_footer(&footer).map_err(|problem| match problem {
            BadFooter::Damaged => corrupt(footer_at, "the footer does not match its checksum"),
            BadFooter::Version(found) => {
                KvError::UnsupportedFormat { path: path.clone(), found, supported: FORMAT_VERSION }
            }
        })?;
        let section = |(offset, bytes): (u64, u64)| -> Result<Vec<u8>> {
            if offset.checked_add(bytes).is_none_or(|end| end > footer_at) {
                return Err(corrupt(footer_at, "the footer points outside the file"));
            }
            let mut frame = vec![0; bytes as usize];
            file.read_at(offset, &mut frame).map_err(io("read"))?;
            frame::decode(meta.id, offset, frame).map_err(|what| corrupt(offset, what))
        };
        let [filter_at, index_at, properties_at] = sections;
        let bloom = Bloom::parse(section(filter_at)?)
            .ok_or_else(|| corrupt(filter_at.0, "the filter has an impossible length"))?;
        let index = Index::parse(&section(index_at)?).ok_or_else(|| corrupt(index_at.0, "the index does not parse"))?;
        let properties = section(properties_at)?;
        let stored = RunMeta::decode(&mut Reader::new(&properties));
        let expected = RunMeta { bytes: 0, ..meta.clone() };
        if stored.as_ref() != Some(&expected) || index.data_bytes() > filter_at.0 {
            return Err(corrupt(properties_at.0, "the file is not the one that the manifest names"));
        }
        Ok(Run {
            meta: meta.clone(),
            slots: Slots::new(index.blocks()),
            index,
            bloom,
            file,
            path,
            context: context.clone(),
            is_obsolete: AtomicBool::new(false),
        })
    }

    pub(crate) fn blocks(&self) -> usize {
        self.index.blocks()
    }

    /// Memory of index and filter.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.index.bytes() + self.bloom.bytes() + self.slots.memory_bytes()
    }

    /// The file goes when the last reference does.
    pub(crate) fn set_obsolete(&self) {
        self.is_obsolete.store(true, Ordering::Release);
    }

    pub(crate) fn block(&self, number: usize, usage: Use) -> Result<Arc<Block>> {
        let cache = &self.context.cache;
        let id = self.meta.id;
        if usage != Use::Once
            && let Some(block) = cache.get(&self.slots, number, usage)
        {
            return Ok(block);
        }
        let (start, end) = self.index.block_range(number);
        let mut frame = vec![0; (end - start) as usize];
        self.file.read_at(start, &mut frame).map_err(|error| KvError::io(&self.path, "read", error))?;
        let block = frame::decode(id, start, frame)
            .and_then(Block::parse)
            .map_err(|what| KvError::corrupt(&self.path, start, what))?;
        let block = Arc::new(block);
        cache.insert(&self.slots, number, &block, usage);
        Ok(block)
    }

    /// The block that holds `key` if any does; `blocks()` if it is above all of them.
    pub(crate) fn find_block(&self, key: &[u8]) -> usize {
        self.index.find(key)
    }

    /// `false` is certain. `hash` is the `hash64` of the key.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.bloom.may_contain(hash)
    }

    /// The entry of `key`; `hash` is its `hash64`. The caller has checked the run's range.
    pub(crate) fn get(&self, key: &[u8], hash: u64) -> Result<Option<Found>> {
        if !self.may_contain(hash) {
            return Ok(None);
        }
        let number = self.find_block(key);
        if number == self.blocks() {
            return Ok(None);
        }
        let block = self.block(number, Use::Get)?;
        let (at, is_exact) = block.search(key);
        if !is_exact {
            return Ok(None);
        }
        let entry = block.entry(at);
        let (seq, value) = (entry.seq, entry.value);
        Ok(Some(Found { block, seq, value }))
    }

    /// Stored bytes between two bounds, to the nearest block.
    pub(crate) fn approximate_bytes(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
        let from = match lower {
            Bound::Included(key) | Bound::Excluded(key) => self.index.bytes_before(key),
            Bound::Unbounded => 0,
        };
        let to = match upper {
            Bound::Included(key) | Bound::Excluded(key) => {
                let block = self.find_block(key);
                if block == self.blocks() { self.meta.bytes } else { self.index.block_range(block).1 }
            }
            Bound::Unbounded => self.meta.bytes,
        };
        let overlaps = match (lower, upper) {
            (Bound::Included(key) | Bound::Excluded(key), _) if *key > *self.meta.key_max => false,
            (_, Bound::Included(key) | Bound::Excluded(key)) if *key < *self.meta.key_min => false,
            _ => true,
        };
        if overlaps { to.saturating_sub(from) } else { 0 }
    }

    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if *self.is_obsolete.get_mut() {
            self.context.graveyard.add(self.meta.id, self.slots.clone());
        }
    }
}

enum BadFooter {
    Damaged,
    Version(u32),
}

fn parse_footer(footer: &[u8; FOOTER_BYTES]) -> Result<[(u64, u64); 3], BadFooter> {
    let damaged = || BadFooter::Damaged;
    let mut reader = Reader::new(footer);
    let mut sections = [(0, 0); 3];
    for section in &mut sections {
        *section = (reader.u64().ok_or_else(damaged)?, reader.u64().ok_or_else(damaged)?);
    }
    let version = reader.u32().ok_or_else(damaged)?;
    let covered = reader.position();
    let crc = reader.u32().ok_or_else(damaged)?;
    if reader.take(MAGIC.len()) != Some(&MAGIC[..]) || crc32fast::hash(&footer[..covered]) != crc {
        return Err(BadFooter::Damaged);
    }
    if version != FORMAT_VERSION {
        return Err(BadFooter::Version(version));
    }
    Ok(sections)
}
