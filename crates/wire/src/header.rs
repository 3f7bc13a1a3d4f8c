//! The 16 bytes that open every message, and the operation codes they can name.

use crate::WireError;

/// The length of a [`Header`] on the wire.
pub const HEADER_BYTES: usize = 16;

/// MongoDB's limit for one message, header included, and what `hello` reports as `maxMessageSizeBytes`.
pub const MAX_MESSAGE_BYTES: usize = 48_000_000;

/// Operation codes. Only OP_MSG, OP_COMPRESSED and OP_QUERY (for the first `hello`) are still in use by clients; the
/// others are named so that an old client gets a clear refusal.
pub mod op_code {
    pub const OP_REPLY: i32 = 1;
    pub const OP_UPDATE: i32 = 2001;
    pub const OP_INSERT: i32 = 2002;
    pub const OP_QUERY: i32 = 2004;
    pub const OP_GET_MORE: i32 = 2005;
    pub const OP_DELETE: i32 = 2006;
    pub const OP_KILL_CURSORS: i32 = 2007;
    pub const OP_COMPRESSED: i32 = 2012;
    pub const OP_MSG: i32 = 2013;

    /// The name of a known operation code.
    pub fn name(code: i32) -> Option<&'static str> {
        Some(match code {
            OP_REPLY => "OP_REPLY",
            OP_UPDATE => "OP_UPDATE",
            OP_INSERT => "OP_INSERT",
            OP_QUERY => "OP_QUERY",
            OP_GET_MORE => "OP_GET_MORE",
            OP_DELETE => "OP_DELETE",
            OP_KILL_CURSORS => "OP_KILL_CURSORS",
            OP_COMPRESSED => "OP_COMPRESSED",
            OP_MSG => "OP_MSG",
            _ => return None,
        })
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes in the whole message, this header included.
    pub message_length: i32,
    pub request_id: i32,
    /// The `request_id` of the request that a reply answers; 0 in a request.
    pub response_to: i32,
    pub op_code: i32,
}

impl Header {
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3] = *bytes;
        Self {
            message_length: i32::from_le_bytes([a0, a1, a2, a3]),
            request_id: i32::from_le_bytes([b0, b1, b2, b3]),
            response_to: i32::from_le_bytes([c0, c1, c2, c3]),
            op_code: i32::from_le_bytes([d0, d1, d2, d3]),
        }
    }

    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.message_length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.request_id.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.response_to.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.op_code.to_le_bytes());
        bytes
    }

    /// The length of the whole message, if it is one that a message within `max` bytes can have.
    pub fn checked_length(&self, max: usize) -> Result<usize, WireError> {
        match usize::try_from(self.message_length) {
            Ok(length) if (HEADER_BYTES..=max).contains(&length) => Ok(length),
            _ => Err(WireError::MessageLength { length: self.message_length, max }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip() {
        let header = Header { message_length: 0x0403_0201, request_id: -2, response_to: 7, op_code: op_code::OP_MSG };
        let bytes = header.to_bytes();
        assert_eq!(bytes, [1, 2, 3, 4, 0xfe, 0xff, 0xff, 0xff, 7, 0, 0, 0, 0xdd, 7, 0, 0]);
        assert_eq!(Header::from_bytes(&bytes), header);
    }

    #[test]
    fn lengths_outside_the_limits_are_refused() {
        let header = |message_length| Header { message_length, request_id: 1, response_to: 0, op_code: 2013 };
        assert_eq!(header(16).checked_length(100), Ok(16));
        assert_eq!(header(100).checked_length(100), Ok(100));
        for length in [i32::MIN, -5, 0, 15, 101, i32::MAX] {
            let error = header(length).checked_length(100);
            assert_eq!(error, Err(WireError::MessageLength { length, max: 100 }));
        }
    }
}
