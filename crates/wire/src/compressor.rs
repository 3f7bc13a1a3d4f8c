//! Wrapping a written message in OP_COMPRESSED.

use flate2::{Compress, FlushCompress, Status};

use crate::{Compression, HEADER_BYTES, Header, op_code};

/// The fields of OP_COMPRESSED before the data: original operation code, uncompressed size, compressor.
const FIELDS_BYTES: usize = 9;

/// The state that compression reuses from message to message. A new one holds no memory.
#[derive(Default)]
pub struct Compressor {
    snappy: Option<snap::raw::Encoder>,
    zlib: Option<Compress>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Compressor {
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives back all memory, for a connection that falls idle.
    pub fn release(&mut self) {
        *self = Self::default();
    }

    /// Appends to `out` the OP_COMPRESSED form of `message`, which is one whole uncompressed message.
    ///
    /// Returns false and leaves `out` as it was if that would not make the message shorter (the receiver takes either,
    /// so `message` should be sent as it is), or if `message` is not one that can be wrapped.
    pub fn compress(&mut self, compression: Compression, message: &[u8], out: &mut Vec<u8>) -> bool {
        let Some((header, payload)) = message.split_first_chunk::<HEADER_BYTES>() else { return false };
        let header = Header::from_bytes(header);
        let whole = usize::try_from(header.message_length) == Ok(message.len());
        let Ok(size) = i32::try_from(payload.len()) else { return false };
        if !whole || header.op_code == op_code::OP_COMPRESSED {
            return false;
        }

        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        out.extend_from_slice(&header.op_code.to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
        out.push(compression.id());
        let written = self.append(compression, payload, out);

        let length = out.len() - start;
        // Noop makes every message longer, and whoever asks for it wants the wrapping.
        let worthwhile = compression == Compression::Noop || length < message.len();
        match i32::try_from(length) {
            Ok(message_length) if written && worthwhile => {
                let header = Header { message_length, op_code: op_code::OP_COMPRESSED, ..header };
                out[start..start + HEADER_BYTES].copy_from_slice(&header.to_bytes());
                true
            }
            _ => {
                out.truncate(start);
                false
            }
        }
    }

    /// Appends compressed `payload` to `out`. False means that it failed or ran out of room, which is the size of the
    /// payload where the algorithm allows to say so: a longer result is of no use.
    fn append(&mut self, compression: Compression, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let room = match compression {
            Compression::Noop => {
                out.extend_from_slice(payload);
                return true;
            }
            // Snappy refuses to start without room for the worst case.
            Compression::Snappy => snap::raw::max_compress_len(payload.len()),
            Compression::Zlib | Compression::Zstd => payload.len().saturating_sub(FIELDS_BYTES),
        };
        out.resize(start + room, 0);
        let target = &mut out[start..];
        let written = match compression {
            Compression::Noop => None,
            Compression::Snappy => {
                self.snappy.get_or_insert_with(snap::raw::Encoder::new).compress(payload, target).ok()
            }
            Compression::Zlib => {
                deflate(self.zlib.get_or_insert_with(|| Compress::new(Default::default(), true)), payload, target)
            }
            Compression::Zstd => {
                if self.zstd.is_none() {
                    self.zstd = zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL).ok();
                }
                self.zstd.as_mut().and_then(|zstd| zstd.compress_to_buffer(payload, target).ok())
            }
        };
        out.truncate(start + written.unwrap_or(0));
        written.is_some()
    }
}

fn deflate(zlib: &mut Compress, payload: &[u8], target: &mut [u8]) -> Option<usize> {
    zlib.reset();
    match zlib.compress(payload, target, FlushCompress::Finish) {
        Ok(Status::StreamEnd) => usize::try_from(zlib.total_out()).ok(),
        _ => None,
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}
