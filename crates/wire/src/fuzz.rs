//! One call for an external fuzzer, and for the mutation test: any bytes in, every invariant of the crate checked.

#![allow(clippy::expect_used)] // A failed expectation is what a fuzzer looks for.

use crate::{
    Compression, Compressor, Decompressor, Envelope, FrameReader, HEADER_BYTES, Header, Message, OpReply, begin_op_msg,
    begin_op_query, op_code,
};

/// The message limit used, small enough to be reached by a fuzzer.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// What the calls of one run share, as the messages of one connection do.
#[derive(Debug, Default)]
pub struct Fuzzer {
    decompressor: Decompressor,
    /// For what this side compresses; the other one's buffer is in use then.
    again: Decompressor,
    compressor: Compressor,
    written: Vec<u8>,
    packed: Vec<u8>,
}

/// Treats `data` as all that a client sends on one connection. Panics if an invariant does not hold.
pub fn fuzz_one(data: &[u8]) {
    Fuzzer::default().run(data);
}

impl Fuzzer {
    /// As [`fuzz_one`], with the reused state of earlier runs. Returns how many messages parsed.
    pub fn run(&mut self, data: &[u8]) -> usize {
        let mut reader = FrameReader::new(MESSAGE_BYTES_MAX);
        let mut source = data;
        let mut parsed = 0;
        while let Ok(Some(frame)) = reader.read_frame(&mut source) {
            let frame_bytes = usize::try_from(frame.header.message_length).expect("a frame has a checked length");
            assert_eq!(frame_bytes, frame.body.len() + HEADER_BYTES);
            let Ok(envelope) = Envelope::open(frame.header, frame.body, &mut self.decompressor, MESSAGE_BYTES_MAX)
            else {
                break;
            };
            assert!(envelope.payload.len() + HEADER_BYTES <= MESSAGE_BYTES_MAX);
            assert_eq!(usize::try_from(envelope.header.message_length), Ok(envelope.payload.len() + HEADER_BYTES));
            if envelope.header.op_code == op_code::OP_REPLY
                && let Ok(reply) = OpReply::parse(envelope.payload)
            {
                assert_eq!(reply.documents.count(), reply.documents.len());
            }
            match envelope.parse() {
                Ok(message) => {
                    parsed += 1;
                    write(&envelope, &message, &mut self.written);
                    check_same(&envelope, &message, &self.written);
                    if let Some(compression) = envelope.compression
                        && self.compressor.compress(compression, &self.written, &mut self.packed)
                    {
                        check_packed(compression, &self.written, &self.packed, &mut self.again);
                    }
                    self.packed.clear();
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    if error.closes_connection() {
                        break;
                    }
                }
            }
        }
        parsed
    }
}

/// Writes `message` again with the writers.
fn write(envelope: &Envelope<'_>, message: &Message<'_>, out: &mut Vec<u8>) {
    out.clear();
    let header = envelope.header;
    let writer = match message {
        Message::Msg(msg) => {
            let mut writer = begin_op_msg(out, header.request_id, header.response_to, msg.flags);
            writer.bytes().extend_from_slice(msg.body);
            for sequence in msg.sequences.iter() {
                assert_eq!(sequence.documents.count(), sequence.documents.len());
                writer
                    .sequence(sequence.identifier, |bytes| {
                        sequence.documents.for_each(|document| bytes.extend_from_slice(document));
                    })
                    .expect("a sequence that was received fits");
            }
            writer
        }
        Message::Query(query) => {
            let mut writer = begin_op_query(
                out,
                header.request_id,
                query.flags,
                query.full_collection_name,
                query.number_to_skip,
                query.number_to_return,
            );
            writer.bytes().extend_from_slice(query.query);
            writer.bytes().extend_from_slice(query.return_fields.unwrap_or_default());
            writer
        }
    };
    writer.finish(MESSAGE_BYTES_MAX).expect("a message that was received fits");
}

/// The written message must read as the same message, and be as long as the first one: nothing may get lost.
fn check_same(envelope: &Envelope<'_>, message: &Message<'_>, written: &[u8]) {
    let (header, payload) = split(written);
    assert_eq!(payload.len(), envelope.payload.len());
    let mut unused = Decompressor::new();
    assert_eq!(Message::parse(header, payload, &mut unused, MESSAGE_BYTES_MAX).as_ref(), Ok(message));
    // The order of sections is free, so the bytes may differ if the body did not come first.
    if matches!(message, Message::Query(_)) || envelope.payload.get(4) == Some(&0) {
        assert_eq!(payload, envelope.payload);
    }
}

/// What was compressed must come out as it was.
fn check_packed(compression: Compression, written: &[u8], packed: &[u8], decompressor: &mut Decompressor) {
    let (header, body) = split(packed);
    let opened = Envelope::open(header, body, decompressor, MESSAGE_BYTES_MAX).expect("what we compress can be opened");
    assert_eq!(opened.compression, Some(compression));
    assert_eq!(opened.header.to_bytes(), written[..HEADER_BYTES]);
    assert_eq!(opened.payload, &written[HEADER_BYTES..]);
}

/// Takes apart a message of our own writing, which must be whole.
fn split(message: &[u8]) -> (Header, &[u8]) {
    let (header, rest) = message.split_first_chunk().expect("a written message has a header");
    let header = Header::from_bytes(header);
    assert_eq!(usize::try_from(header.message_length), Ok(message.len()));
    (header, rest)
}
