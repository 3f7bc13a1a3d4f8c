//! Writes a run: entries in order in, one synced file out.

use std::path::PathBuf;
use std::sync::Arc;

use super::block::BlockBuilder;
use super::bloom::BloomBuilder;
use super::index::{self, IndexBuilder};
use super::{FORMAT_VERSION, MAGIC, RunMeta, file_name, frame};
use crate::Result;
use crate::disk::{Disk, DiskFile};
use crate::error::KvError;
use crate::hash::hash64;
use crate::options::{Compression, Options};

/// Handed to the file in pieces of about this size.
const WRITE_BYTES: usize = 512 << 10;

pub(crate) struct RunWriter {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    block_bytes: usize,
    compression: Compression,
    block: BlockBuilder,
    index: IndexBuilder,
    bloom: BloomBuilder,
    /// The finished block, before framing.
    raw: Vec<u8>,
    /// Framed, not yet in the file.
    buffer: Vec<u8>,
    written: u64,
    last_key: Vec<u8>,
    meta: RunMeta,
}

impl RunWriter {
    pub(crate) fn create(disk: &dyn Disk, id: u64, options: &Options) -> Result<RunWriter> {
        let name = file_name(id);
        let path = disk.path(&name);
        let file = disk.create(&name).map_err(|error| KvError::io(&path, "create", error))?;
        Ok(RunWriter {
            file,
            path,
            block_bytes: options.block_bytes,
            compression: options.compression,
            block: BlockBuilder::new(),
            index: IndexBuilder::default(),
            bloom: BloomBuilder::default(),
            raw: Vec::new(),
            buffer: Vec::with_capacity(WRITE_BYTES * 2),
            written: 0,
            last_key: Vec::new(),
            meta: RunMeta {
                id,
                bytes: 0,
                entries: 0,
                tombstones: 0,
                seq_max: 0,
                key_min: Box::default(),
                key_max: Box::default(),
            },
        })
    }

    /// Bytes so far, the unfinished block included.
    pub(crate) fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64 + self.block.len_bytes() as u64
    }

    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Keys must come in strictly ascending order.
    pub(crate) fn add(&mut self, key: &[u8], seq: u64, value: Option<&[u8]>) -> Result<()> {
        self.add_hashed(key, Some(hash64(key)), seq, value)
    }

    /// As `add`, with what the filter is to hold for the entry, if anything.
    pub(crate) fn add_hashed(&mut self, key: &[u8], hash: Option<u64>, seq: u64, value: Option<&[u8]>) -> Result<()> {
        debug_assert!(self.meta.entries == 0 || *self.last_key < *key);
        let value_len = value.map_or(0, <[u8]>::len);
        // A large entry gets a block of its own, so that reading its neighbours stays cheap.
        let is_full =
            self.block.len_bytes() >= self.block_bytes || (value_len >= self.block_bytes && !self.block.is_empty());
        if is_full {
            self.finish_block(Some(key))?;
        }
        if self.meta.entries == 0 {
            self.meta.key_min = key.into();
        }
        self.block.add(key, seq, value);
        if let Some(hash) = hash {
            self.bloom.add(hash);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.meta.entries += 1;
        self.meta.tombstones += u64::from(value.is_none());
        self.meta.seq_max = self.meta.seq_max.max(seq);
        Ok(())
    }

    fn finish_block(&mut self, next_key: Option<&[u8]>) -> Result<()> {
        self.block.finish(&mut self.raw);
        let separator = match next_key {
            Some(next) => index::separator(&self.last_key, next),
            None => &self.last_key,
        };
        let offset = self.written + self.buffer.len() as u64;
        let (id, compression) = (self.meta.id, self.compression);
        let len = frame::encode(&mut self.buffer, id, offset, &self.raw, compression);
        self.index.add(separator, len as u64);
        if self.buffer.len() >= WRITE_BYTES {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<()> {
        self.file.append(&self.buffer).map_err(|error| KvError::io(&self.path, "write to", error))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Appends a frame of its own and returns where it lies.
    fn section(&mut self, raw: &[u8], compression: Compression) -> (u64, u64) {
        let offset = self.written + self.buffer.len() as u64;
        let len = frame::encode(&mut self.buffer, self.meta.id, offset, raw, compression);
        (offset, len as u64)
    }

    /// Writes what is left and syncs the file. The folder is synced by the caller.
    pub(crate) fn finish(mut self) -> Result<RunMeta> {
        self.finish_block(None)?;
        self.meta.key_max = self.last_key.as_slice().into();
        let bloom = self.bloom.finish();
        let filter = self.section(&bloom, Compression::None);
        let encoded = self.index.finish();
        let index = self.section(&encoded, self.compression);
        let mut properties = Vec::new();
        // The file's own length is not known to itself; the manifest has it.
        self.meta.encode(&mut properties);
        let properties = self.section(&properties, Compression::None);
        let mut footer = Vec::with_capacity(super::FOOTER_BYTES);
        for (offset, len) in [filter, index, properties] {
            footer.extend_from_slice(&offset.to_le_bytes());
            footer.extend_from_slice(&len.to_le_bytes());
        }
        footer.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        footer.extend_from_slice(&crc32fast::hash(&footer).to_le_bytes());
        footer.extend_from_slice(&MAGIC);
        self.buffer.extend_from_slice(&footer);
        self.write_out()?;
        self.meta.bytes = self.written;
        self.file.sync().map_err(|error| KvError::io(&self.path, "sync", error))?;
        Ok(self.meta)
    }
}
