//! OP_REPLY: the answer to OP_QUERY. Parsed only by clients, that is, by tests and tools.

use crate::bytes::{split_i32, split_i64, split_u32};
use crate::{Documents, WireError, op_code};

/// The flag bits of OP_REPLY.
pub mod response_flags {
    /// The one document of the reply is an error with `$err`.
    pub const QUERY_FAILURE: u32 = 1 << 1;
    /// Always set by servers of this century; some clients look for it.
    pub const AWAIT_CAPABLE: u32 = 1 << 3;
}

/// A parsed OP_REPLY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpReply<'a> {
    /// See [`response_flags`].
    pub flags: u32,
    pub cursor_id: i64,
    pub starting_from: i32,
    pub documents: Documents<'a>,
}

impl<'a> OpReply<'a> {
    /// Parses what follows the header.
    pub fn parse(payload: &'a [u8]) -> Result<Self, WireError> {
        const TRUNCATED: WireError = WireError::Truncated(op_code::OP_REPLY);
        let (flags, rest) = split_u32(payload).ok_or(TRUNCATED)?;
        let (cursor_id, rest) = split_i64(rest).ok_or(TRUNCATED)?;
        let (starting_from, rest) = split_i32(rest).ok_or(TRUNCATED)?;
        let (number_returned, rest) = split_i32(rest).ok_or(TRUNCATED)?;
        let documents = Documents::new(rest)?;
        match usize::try_from(number_returned) {
            Ok(announced) if announced == documents.len() => Ok(Self { flags, cursor_id, starting_from, documents }),
            Ok(announced) if announced < documents.len() => Err(WireError::TrailingBytes(op_code::OP_REPLY)),
            _ => Err(TRUNCATED),
        }
    }
}
