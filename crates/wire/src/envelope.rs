//! A frame after decompression and before parsing: all that a server must know to answer, even if parsing fails.

use crate::bytes::{split_i32, split_u8, split_u32};
use crate::{Compression, Decompressor, HEADER_BYTES, Header, Message, OpMsg, OpQuery, WireError, op_code};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The header as it was before compression.
    pub header: Header,
    /// How the request was compressed. The reply should be compressed in the same way.
    pub compression: Option<Compression>,
    /// What follows the header.
    pub payload: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens the frame of a header and what follows it. `max` bounds the message after decompression too, header
    /// included.
    pub fn open(
        header: Header,
        body: &'a [u8],
        decompressor: &'a mut Decompressor,
        max: usize,
    ) -> Result<Self, WireError> {
        if header.op_code != op_code::OP_COMPRESSED {
            return Ok(Self { header, compression: None, payload: body });
        }
        let (original_op_code, rest) = split_i32(body).ok_or(WireError::CompressedTooShort)?;
        let (announced, rest) = split_i32(rest).ok_or(WireError::CompressedTooShort)?;
        let (compressor_id, data) = split_u8(rest).ok_or(WireError::CompressedTooShort)?;
        let compression = Compression::from_id(compressor_id).ok_or(WireError::UnknownCompressor(compressor_id))?;
        if original_op_code == op_code::OP_COMPRESSED {
            return Err(WireError::NestedCompression);
        }
        let wrong_size = WireError::UncompressedSize { announced, max };
        let size = match usize::try_from(announced) {
            Ok(size) if size <= max.saturating_sub(HEADER_BYTES) => size,
            _ => return Err(wrong_size),
        };
        let message_length = i32::try_from(size + HEADER_BYTES).map_err(|_| wrong_size)?;
        let payload = decompressor.decompress(compression, data, size)?;
        let header = Header { message_length, op_code: original_op_code, ..header };
        Ok(Self { header, compression: Some(compression), payload })
    }

    pub fn parse(&self) -> Result<Message<'a>, WireError> {
        match self.header.op_code {
            op_code::OP_MSG => OpMsg::parse(&self.header, self.payload).map(Message::Msg),
            op_code::OP_QUERY => OpQuery::parse(self.payload).map(Message::Query),
            other => Err(WireError::UnsupportedOpCode(other)),
        }
    }

    /// The flags of an OP_MSG, also of one that does not parse: an error is not to be sent to a client that set
    /// `moreToCome`, and is to carry a checksum if the request did.
    pub fn op_msg_flags(&self) -> Option<u32> {
        match self.header.op_code {
            op_code::OP_MSG => split_u32(self.payload).map(|(flags, _)| flags),
            _ => None,
        }
    }
}
