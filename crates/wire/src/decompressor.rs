//! Undoing the compression of a message whose size was announced, into one reused buffer.

use flate2::{Decompress, FlushDecompress, Status};

use crate::recycle::trim;
use crate::{Compression, WireError};

/// The state that decompression reuses from message to message. A new one holds no memory.
#[derive(Default)]
pub struct Decompressor {
    /// Its length is the room it has: only growth is paid for with zeroing.
    buffer: Vec<u8>,
    zlib: Option<Decompress>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Decompressor {
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives back all memory, for a connection that falls idle.
    pub fn release(&mut self) {
        *self = Self::default();
    }

    /// Decompresses `data`, which must give exactly `announced` bytes and end there. The caller has checked `announced`
    /// against the message limit.
    pub(crate) fn decompress(
        &mut self,
        compression: Compression,
        data: &[u8],
        announced: usize,
    ) -> Result<&[u8], WireError> {
        let failed = WireError::Decompression { compression, announced };
        if announced > data.len().saturating_mul(compression.expansion_max()) {
            return Err(failed);
        }
        trim(&mut self.buffer, announced);
        if self.buffer.len() < announced {
            // Exactly, so that the buffer stays within the message limit.
            self.buffer.reserve_exact(announced - self.buffer.len());
            self.buffer.resize(announced, 0);
        }
        let out = &mut self.buffer[..announced];
        let complete = match compression {
            Compression::Noop => {
                let same = data.len() == announced;
                if same {
                    out.copy_from_slice(data);
                }
                same
            }
            Compression::Snappy => {
                snap::raw::decompress_len(data) == Ok(announced)
                    && snap::raw::Decoder::new().decompress(data, out) == Ok(announced)
            }
            Compression::Zlib => inflate(self.zlib.get_or_insert_with(|| Decompress::new(true)), data, out),
            Compression::Zstd => {
                if self.zstd.is_none() {
                    self.zstd = zstd::bulk::Decompressor::new().ok();
                }
                // In one call: streaming would set aside the window that the data asks for, up to 128 MiB.
                let written = self.zstd.as_mut().map(|zstd| zstd.decompress_to_buffer(data, out));
                matches!(written, Some(Ok(written)) if written == announced)
            }
        };
        if complete { Ok(&self.buffer[..announced]) } else { Err(failed) }
    }
}

/// Whether `data` is one whole zlib stream that fills `out` exactly.
fn inflate(zlib: &mut Decompress, data: &[u8], out: &mut [u8]) -> bool {
    zlib.reset(true);
    let status = zlib.decompress(data, out, FlushDecompress::Finish);
    matches!(status, Ok(Status::StreamEnd))
        && zlib.total_in() == data.len() as u64
        && zlib.total_out() == out.len() as u64
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("room", &self.buffer.len()).finish_non_exhaustive()
    }
}
