//! Frames in, frames out: the MongoDB wire protocol without sockets and without commands.
//!
//! A request walks through this crate in four steps, each of which borrows from the one before and copies nothing:
//!
//! 1. [`FrameReader`] collects bytes into one reused buffer until a whole [`Frame`] is there.
//! 2. [`Envelope::open`] undoes OP_COMPRESSED, if that is what the frame is.
//! 3. [`Envelope::parse`] gives a [`Message`]: [`OpMsg`] or [`OpQuery`].
//! 4. The reply is written in place by [`begin_op_msg`] or [`begin_op_reply`], and wrapped by [`Compressor::compress`]
//!    if the request was compressed.
//!
//! Documents are byte slices. Their outer length and their last byte are checked here, because frames cannot be taken
//! apart without; what is inside is for the `value` crate to judge.
//!
//! Invariants:
//! - No input makes this crate panic, or hold more memory than a small multiple of what was received, or more than the
//!   given message limit in each buffer.
//! - Every [`WireError`] says whether the connection can go on ([`WireError::reply_code`]).
//! - What a writer writes, the parser reads back unchanged.

mod bytes;
mod compression;
mod compressor;
mod decompressor;
mod document;
mod envelope;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod header;
mod message;
mod op_msg;
mod op_query;
mod op_reply;
mod reader;
mod recycle;
mod writer;

pub use compression::Compression;
pub use compressor::Compressor;
pub use decompressor::Decompressor;
pub use document::Documents;
pub use envelope::Envelope;
pub use error::WireError;
#[doc(hidden)]
pub use fuzz::fuzz_one;
pub use header::{HEADER_BYTES, Header, MAX_MESSAGE_BYTES, op_code};
pub use message::Message;
pub use op_msg::{DocumentSequence, OpMsg, SEQUENCES_MAX, Sequences, flags};
pub use op_query::OpQuery;
pub use op_reply::{OpReply, response_flags};
pub use reader::{Frame, FrameReader, ReadError, read_message};
pub use recycle::{RETAINED_BYTES, recycle};
pub use writer::{MessageWriter, begin_op_msg, begin_op_query, begin_op_reply};
