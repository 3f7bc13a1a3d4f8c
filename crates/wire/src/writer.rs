//! Writing messages in place: the header goes into the caller's buffer first, the caller appends its bytes, and the
//! length is filled in at the end.

use crate::op_msg::{CHECKSUM_BYTES, KIND_BODY, KIND_SEQUENCE};
use crate::{HEADER_BYTES, Header, WireError, flags, op_code};

/// A message being written at the end of a buffer. Dropped without [`finish`](Self::finish), it takes back what it wrote,
/// so that an error halfway cannot leave half a message before the next one.
#[derive(Debug)]
#[must_use = "a message is taken back unless it is finished"]
pub struct MessageWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    header: Header,
    finished: bool,
}

/// Begins an OP_MSG with these [`flags`]. The body document comes next: append it to [`MessageWriter::bytes`].
///
/// With [`flags::CHECKSUM_PRESENT`], `finish` appends the checksum.
pub fn begin_op_msg(out: &mut Vec<u8>, request_id: i32, response_to: i32, flags: u32) -> MessageWriter<'_> {
    let writer = MessageWriter::begin(out, request_id, response_to, op_code::OP_MSG);
    writer.out.extend_from_slice(&flags.to_le_bytes());
    writer.out.push(KIND_BODY);
    writer
}

/// Begins an OP_REPLY, the answer to OP_QUERY. Its `number_returned` documents come next.
pub fn begin_op_reply(
    out: &mut Vec<u8>,
    request_id: i32,
    response_to: i32,
    response_flags: u32,
    cursor_id: i64,
    starting_from: i32,
    number_returned: i32,
) -> MessageWriter<'_> {
    let writer = MessageWriter::begin(out, request_id, response_to, op_code::OP_REPLY);
    writer.out.extend_from_slice(&response_flags.to_le_bytes());
    writer.out.extend_from_slice(&cursor_id.to_le_bytes());
    writer.out.extend_from_slice(&starting_from.to_le_bytes());
    writer.out.extend_from_slice(&number_returned.to_le_bytes());
    writer
}

/// Begins an OP_QUERY, as a client does for its first `hello`. The query document comes next. `full_collection_name` may
/// not contain a NUL; what follows one is left out.
pub fn begin_op_query<'a>(
    out: &'a mut Vec<u8>,
    request_id: i32,
    flags: u32,
    full_collection_name: &str,
    number_to_skip: i32,
    number_to_return: i32,
) -> MessageWriter<'a> {
    let writer = MessageWriter::begin(out, request_id, 0, op_code::OP_QUERY);
    writer.out.extend_from_slice(&flags.to_le_bytes());
    push_c_string(writer.out, full_collection_name);
    writer.out.extend_from_slice(&number_to_skip.to_le_bytes());
    writer.out.extend_from_slice(&number_to_return.to_le_bytes());
    writer
}

impl<'a> MessageWriter<'a> {
    fn begin(out: &'a mut Vec<u8>, request_id: i32, response_to: i32, op_code: i32) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let header = Header { message_length: 0, request_id, response_to, op_code };
        Self { out, start, header, finished: false }
    }

    /// The buffer, to append documents to. What is already in it is not to be touched.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// The message so far, header included.
    pub fn message_bytes(&self) -> usize {
        self.out.len().saturating_sub(self.start)
    }

    /// Sets more flags of an OP_MSG: whether more is to come is often known only once the body is written.
    pub fn add_flags(&mut self, more: u32) {
        let at = self.start + HEADER_BYTES;
        if self.header.op_code == op_code::OP_MSG
            && let Some(bytes) = self.out.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut())
        {
            *bytes = (u32::from_le_bytes(*bytes) | more).to_le_bytes();
        }
    }

    /// Adds a document sequence to an OP_MSG whose body is complete; `write` appends its documents. `identifier` may not
    /// contain a NUL; what follows one is left out.
    pub fn sequence(&mut self, identifier: &str, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        self.out.push(KIND_SEQUENCE);
        let at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        push_c_string(self.out, identifier);
        write(self.out);
        let size = self.out.len().saturating_sub(at);
        let too_large = WireError::ReplyTooLarge { length: size, max: i32::MAX as usize };
        let size = i32::try_from(size).map_err(|_| too_large)?;
        if let Some(bytes) = self.out.get_mut(at..at + 4) {
            bytes.copy_from_slice(&size.to_le_bytes());
        }
        Ok(())
    }

    /// Fills in the length, and appends the checksum if the flags say so. A message longer than `max` is taken back.
    pub fn finish(mut self, max: usize) -> Result<(), WireError> {
        let with_checksum = self.has_checksum();
        let length = self.message_bytes() + if with_checksum { CHECKSUM_BYTES } else { 0 };
        self.header.message_length = match i32::try_from(length) {
            Ok(message_length) if length <= max => message_length,
            _ => return Err(WireError::ReplyTooLarge { length, max }),
        };
        if let Some(bytes) = self.out.get_mut(self.start..self.start + HEADER_BYTES) {
            bytes.copy_from_slice(&self.header.to_bytes());
        }
        if with_checksum {
            let checksum = crc32c::crc32c(&self.out[self.start..]);
            self.out.extend_from_slice(&checksum.to_le_bytes());
        }
        self.finished = true;
        Ok(())
    }

    fn has_checksum(&self) -> bool {
        let flags = self.out.get(self.start + HEADER_BYTES..).and_then(|bytes| bytes.first_chunk());
        self.header.op_code == op_code::OP_MSG
            && flags.is_some_and(|flags| u32::from_le_bytes(*flags) & flags::CHECKSUM_PRESENT != 0)
    }
}

impl Drop for MessageWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.out.truncate(self.start);
        }
    }
}

fn push_c_string(out: &mut Vec<u8>, string: &str) {
    out.extend(string.bytes().take_while(|byte| *byte != 0));
    out.push(0);
}
