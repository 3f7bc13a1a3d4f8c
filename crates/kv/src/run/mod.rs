//! Runs: immutable sorted files. Written once by a flush or a compaction, then only read, and
//! removed when nothing refers to them any more.
//!
//! A run holds one version of each of its keys (the newest when it was written), with the
//! number of the commit that wrote it.

mod block;
mod bloom;
mod cursor;
mod frame;
mod graveyard;
mod index;
mod level;
mod near;
mod reader;
mod writer;

pub(crate) use block::Block;
pub(crate) use bloom::MemBloom;
pub(crate) use cursor::RunCursor;
pub(crate) use graveyard::Graveyard;
pub(crate) use level::Level;
pub(crate) use near::NearRuns;
pub(crate) use reader::{Found, Run, RunContext};
pub(crate) use writer::RunWriter;

use crate::varint::{self, Reader};

pub(crate) const RUN_SUFFIX: &str = ".run";
const MAGIC: [u8; 8] = *b"ESPRUN\r\n";
const FORMAT_VERSION: u32 = 1;
const FOOTER_BYTES: usize = 64;

pub(crate) fn file_name(id: u64) -> String {
    format!("{id:016x}{RUN_SUFFIX}")
}

/// What is known of a run without opening it. Stored in its file and in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunMeta {
    pub(crate) id: u64,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) seq_max: u64,
    pub(crate) key_min: Box<[u8]>,
    pub(crate) key_max: Box<[u8]>,
}

impl RunMeta {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.id, self.bytes, self.entries, self.tombstones, self.seq_max] {
            varint::put(out, number);
        }
        varint::put_slice(out, &self.key_min);
        varint::put_slice(out, &self.key_max);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<RunMeta> {
        Some(RunMeta {
            id: reader.varint()?,
            bytes: reader.varint()?,
            entries: reader.varint()?,
            tombstones: reader.varint()?,
            seq_max: reader.varint()?,
            key_min: reader.slice()?.into(),
            key_max: reader.slice()?.into(),
        })
    }

    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        *self.key_min <= *key && *key <= *self.key_max
    }

    pub(crate) fn overlaps(&self, key_min: &[u8], key_max: &[u8]) -> bool {
        *self.key_min <= *key_max && *key_min <= *self.key_max
    }
}

#[cfg(test)]
pub(crate) fn test_block(bytes: usize) -> std::sync::Arc<Block> {
    #![allow(clippy::unwrap_used)]
    let mut builder = block::BlockBuilder::new();
    builder.add(b"k", 1, Some(&vec![0; bytes]));
    let mut out = Vec::new();
    builder.finish(&mut out);
    std::sync::Arc::new(Block::parse(out).unwrap())
}
