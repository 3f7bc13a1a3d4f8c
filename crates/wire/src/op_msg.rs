//! OP_MSG, the message that carries every command and every reply: flags, one body document, document sequences, and
//! an optional checksum.

use crate::bytes::{split_c_string, split_i32, split_u8, split_u32};
use crate::document::split_document;
use crate::{Documents, Header, WireError};

/// The flag bits of OP_MSG. A receiver must know bits 0–15 and may ignore the rest.
pub mod flags {
    /// The message ends in a CRC-32C of all that comes before.
    pub const CHECKSUM_PRESENT: u32 = 1;
    /// In a request: no reply is wanted. In a reply: another reply follows without a request.
    pub const MORE_TO_COME: u32 = 1 << 1;
    /// The client takes replies with `MORE_TO_COME`.
    pub const EXHAUST_ALLOWED: u32 = 1 << 16;

    pub(crate) const REQUIRED: u32 = 0xffff;
    pub(crate) const KNOWN_REQUIRED: u32 = CHECKSUM_PRESENT | MORE_TO_COME;
}

pub(crate) const CHECKSUM_BYTES: usize = 4;

pub(crate) const KIND_BODY: u8 = 0;
pub(crate) const KIND_SEQUENCE: u8 = 1;
const KIND_SECURITY_TOKEN: u8 = 2;

/// Document sequences that a message may have, as in MongoDB: no command takes more than `bulkWrite` does (`ops` and
/// `nsInfo`).
pub const SEQUENCES_MAX: usize = 2;

/// A parsed OP_MSG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpMsg<'a> {
    /// As received, unknown optional bits included; see [`flags`].
    pub flags: u32,
    pub body: &'a [u8],
    pub sequences: Sequences<'a>,
}

/// An array argument of the command, sent beside the body and not in it: `documents` of an insert, for example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentSequence<'a> {
    pub identifier: &'a str,
    pub documents: Documents<'a>,
}

/// The document sequences of a message, in the order received, with distinct identifiers.
#[derive(Clone, Default)]
pub struct Sequences<'a> {
    // Inline, because nearly every message has none or one.
    all: [DocumentSequence<'a>; SEQUENCES_MAX],
    count: usize,
}

impl<'a> Sequences<'a> {
    pub fn get(&self, identifier: &str) -> Option<Documents<'a>> {
        self.iter().find(|sequence| sequence.identifier == identifier).map(|sequence| sequence.documents)
    }

    fn push(&mut self, sequence: DocumentSequence<'a>) -> Result<(), WireError> {
        if self.count == SEQUENCES_MAX {
            return Err(WireError::TooManySequences { max: SEQUENCES_MAX });
        }
        if self.get(sequence.identifier).is_some() {
            return Err(WireError::DuplicateSequence(sequence.identifier.into()));
        }
        self.all[self.count] = sequence;
        self.count += 1;
        Ok(())
    }
}

impl<'a> std::ops::Deref for Sequences<'a> {
    type Target = [DocumentSequence<'a>];

    fn deref(&self) -> &Self::Target {
        &self.all[..self.count]
    }
}

impl PartialEq for Sequences<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Sequences<'_> {}

impl std::fmt::Debug for Sequences<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> OpMsg<'a> {
    /// Parses what follows the header. The header is needed for the checksum, which covers it; it must describe the
    /// message as it was before compression.
    pub fn parse(header: &Header, payload: &'a [u8]) -> Result<Self, WireError> {
        let (flags, mut rest) = split_u32(payload).ok_or(WireError::OpMsgTooShort)?;
        let unknown = flags & flags::REQUIRED & !flags::KNOWN_REQUIRED;
        if unknown != 0 {
            return Err(WireError::UnknownFlags(unknown));
        }
        if flags & flags::CHECKSUM_PRESENT != 0 {
            // Before anything else is looked at: damaged bytes should not be answered as if the client had meant them.
            let (_, checksum) = rest.split_last_chunk::<CHECKSUM_BYTES>().ok_or(WireError::OpMsgTooShort)?;
            let covered = &payload[..payload.len() - CHECKSUM_BYTES];
            let computed = crc32c::crc32c_append(crc32c::crc32c(&header.to_bytes()), covered);
            if computed != u32::from_le_bytes(*checksum) {
                return Err(WireError::ChecksumMismatch);
            }
            rest = &rest[..rest.len() - CHECKSUM_BYTES];
        }

        let mut body = None;
        let mut sequences = Sequences::default();
        while let Some((kind, section)) = split_u8(rest) {
            rest = match kind {
                KIND_BODY if body.is_some() => return Err(WireError::MultipleBodies),
                KIND_BODY => {
                    let (document, after) = split_document(section)?;
                    body = Some(document);
                    after
                }
                KIND_SEQUENCE => {
                    let (sequence, after) = split_sequence(section)?;
                    sequences.push(sequence)?;
                    after
                }
                KIND_SECURITY_TOKEN => return Err(WireError::SecurityToken),
                other => return Err(WireError::UnknownSection(other)),
            };
        }
        let body = body.ok_or(WireError::MissingBody)?;
        Ok(Self { flags, body, sequences })
    }

    pub fn more_to_come(&self) -> bool {
        self.flags & flags::MORE_TO_COME != 0
    }

    pub fn exhaust_allowed(&self) -> bool {
        self.flags & flags::EXHAUST_ALLOWED != 0
    }

    /// Whether the request carried a checksum, and so wants one in the reply.
    pub fn has_checksum(&self) -> bool {
        self.flags & flags::CHECKSUM_PRESENT != 0
    }
}

/// Takes one document sequence, after its kind byte, off the front of `bytes`.
fn split_sequence(bytes: &[u8]) -> Result<(DocumentSequence<'_>, &[u8]), WireError> {
    let available = bytes.len();
    let wrong_length = |size| WireError::SequenceLength { size, available };
    let (size, _) = split_i32(bytes).ok_or(wrong_length(0))?;
    // The size counts itself.
    let (section, after) =
        usize::try_from(size).ok().and_then(|size| bytes.split_at_checked(size)).ok_or(wrong_length(size))?;
    let (_, section) = split_i32(section).ok_or(wrong_length(size))?;
    let (identifier, documents) = split_c_string(section).ok_or(WireError::SequenceIdentifier)?;
    let identifier = std::str::from_utf8(identifier).map_err(|_| WireError::SequenceIdentifier)?;
    Ok((DocumentSequence { identifier, documents: Documents::new(documents)? }, after))
}
