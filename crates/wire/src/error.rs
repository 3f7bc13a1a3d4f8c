//! What can be wrong with a message, and whether the connection can go on after it.
//!
//! As in MongoDB, a message whose frame is sound but whose sections are not gets an error reply; one that casts doubt on
//! the frame itself, or that has no form of reply, ends the connection.

use std::fmt;

use crate::{Compression, op_code};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The header's length is shorter than a header or beyond the limit.
    MessageLength {
        length: i32,
        max: usize,
    },
    /// The connection ended inside a message.
    UnexpectedEnd {
        needed: usize,
        received: usize,
    },
    /// An operation code from before OP_MSG, or one that nobody knows.
    UnsupportedOpCode(i32),

    /// OP_COMPRESSED without room for its own fields.
    CompressedTooShort,
    UnknownCompressor(u8),
    /// The announced size is negative or gives a message beyond the limit.
    UncompressedSize {
        announced: i32,
        max: usize,
    },
    /// The compressed bytes are damaged, or do not give exactly the announced number of bytes.
    Decompression {
        compression: Compression,
        announced: usize,
    },
    /// OP_COMPRESSED inside OP_COMPRESSED.
    NestedCompression,

    /// OP_MSG without room for its flags.
    OpMsgTooShort,
    /// Flag bits 0–15 that this version does not know, and therefore may not ignore.
    UnknownFlags(u32),
    ChecksumMismatch,
    MissingBody,
    MultipleBodies,
    UnknownSection(u8),
    /// A section of kind 2, which only multitenant deployments take.
    SecurityToken,
    /// A document sequence whose size leads outside the message or has no room for its own fields.
    SequenceLength {
        size: i32,
        available: usize,
    },
    SequenceIdentifier,
    DuplicateSequence(Box<str>),
    TooManySequences {
        max: usize,
    },

    /// A message of this operation ends before its fixed fields do.
    Truncated(i32),
    /// Bytes after the last field of a message.
    TrailingBytes(i32),
    CollectionName,

    /// A document's length is below the five bytes of an empty one.
    DocumentTooShort {
        length: i32,
    },
    /// A document's length leads outside the message.
    DocumentLength {
        length: i32,
        available: usize,
    },
    DocumentNotTerminated,

    /// A message we wanted to write is beyond the limit.
    ReplyTooLarge {
        length: usize,
        max: usize,
    },
}

impl WireError {
    /// The MongoDB error code to answer with, or `None` if the connection must be closed without an answer.
    ///
    /// The answer has the form that the request's operation code asks for, and is left out if an OP_MSG request carries
    /// `moreToCome` (see [`Envelope::op_msg_flags`](crate::Envelope::op_msg_flags)).
    pub fn reply_code(&self) -> Option<i32> {
        Some(match self {
            Self::MessageLength { .. }
            | Self::UnexpectedEnd { .. }
            | Self::CompressedTooShort
            | Self::UnknownCompressor(_)
            | Self::UncompressedSize { .. }
            | Self::Decompression { .. }
            | Self::NestedCompression
            | Self::OpMsgTooShort
            | Self::UnknownFlags(_)
            | Self::ChecksumMismatch
            | Self::TooManySequences { .. }
            | Self::Truncated(_)
            | Self::TrailingBytes(_) => return None,
            // The other legacy operations had no reply, so an error could not reach the client.
            Self::UnsupportedOpCode(op_code::OP_GET_MORE) => 5_739_101,
            Self::UnsupportedOpCode(_) => return None,
            Self::SecurityToken => 13,
            Self::SequenceLength { .. } | Self::SequenceIdentifier => 15,
            Self::DocumentTooShort { .. } | Self::DocumentLength { .. } | Self::DocumentNotTerminated => 22,
            Self::CollectionName => 73,
            Self::MultipleBodies => 40_430,
            Self::DuplicateSequence(_) => 40_431,
            Self::UnknownSection(_) => 40_432,
            Self::MissingBody => 40_587,
            Self::ReplyTooLarge { .. } => 10_334,
        })
    }

    /// Whether the connection must be closed without an answer.
    pub fn closes_connection(&self) -> bool {
        self.reply_code().is_none()
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MessageLength { length, max } => {
                write!(f, "message length {length} is invalid: the minimum is 16, the maximum {max}")
            }
            Self::UnexpectedEnd { needed, received } => {
                write!(f, "the connection ended after {received} of {needed} bytes of a message")
            }
            Self::UnsupportedOpCode(code) => match op_code::name(*code) {
                Some(name) => {
                    write!(f, "{name} is no longer supported. The client driver may require an upgrade to OP_MSG")
                }
                None => write!(f, "unknown operation code {code}"),
            },
            Self::CompressedTooShort => write!(f, "OP_COMPRESSED message too short for its header"),
            Self::UnknownCompressor(id) => write!(f, "unknown compressor id {id}"),
            Self::UncompressedSize { announced, max } => {
                write!(f, "uncompressed size {announced} is invalid: the message may have at most {max} bytes")
            }
            Self::Decompression { compression, announced } => {
                let name = compression.name();
                write!(f, "the {name} data in an OP_COMPRESSED message does not decompress to {announced} bytes")
            }
            Self::NestedCompression => write!(f, "OP_COMPRESSED inside an OP_COMPRESSED message"),
            Self::OpMsgTooShort => write!(f, "OP_MSG message too short for its flags and checksum"),
            Self::UnknownFlags(bits) => write!(f, "OP_MSG message contains illegal flags value: {bits:#034b}"),
            Self::ChecksumMismatch => write!(f, "OP_MSG checksum does not match contents"),
            Self::MissingBody => write!(f, "OP_MSG messages must have a body"),
            Self::MultipleBodies => write!(f, "Multiple body sections in message"),
            Self::UnknownSection(kind) => write!(f, "Unknown section kind {kind}"),
            Self::SecurityToken => write!(f, "Unsupported Security Token provided"),
            Self::SequenceLength { size, available } => {
                write!(f, "a document sequence of size {size} does not fit the {available} bytes left in the message")
            }
            Self::SequenceIdentifier => {
                write!(f, "the identifier of a document sequence is not a NUL-terminated UTF-8 string")
            }
            Self::DuplicateSequence(identifier) => write!(f, "Duplicate document sequence: {identifier}"),
            Self::TooManySequences { max } => {
                write!(f, "Too many document sequences in OP_MSG: the maximum is {max}")
            }
            Self::Truncated(code) => write!(f, "{} message too short for its fields", name_of(*code)),
            Self::TrailingBytes(code) => write!(f, "{} message has bytes after its last field", name_of(*code)),
            Self::CollectionName => write!(f, "the collection name of an OP_QUERY message is not valid UTF-8"),
            Self::DocumentTooShort { length } => {
                write!(f, "BSON data has to be at least 5 bytes, but a document has length {length}")
            }
            Self::DocumentLength { length, available } => {
                write!(f, "Incorrect BSON length: {length}, with {available} bytes left in its section")
            }
            Self::DocumentNotTerminated => write!(f, "BSON object not terminated with EOO"),
            Self::ReplyTooLarge { length, max } => {
                write!(f, "a message of {length} bytes is beyond the maximum of {max}")
            }
        }
    }
}

fn name_of(code: i32) -> &'static str {
    op_code::name(code).unwrap_or("unknown")
}

impl std::error::Error for WireError {}
