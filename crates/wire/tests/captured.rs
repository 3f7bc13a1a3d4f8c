//! Messages of real clients and a real server parse, and written again they are the same bytes.
#![allow(clippy::unwrap_used)]

use espalier_wire::{
    Compression, Compressor, Decompressor, Envelope, Frame, FrameReader, MAX_MESSAGE_BYTES, Message, OpMsg, OpReply,
    begin_op_msg, begin_op_query, begin_op_reply, flags, op_code, read_message, response_flags,
};

fn captured() -> impl Iterator<Item = (&'static str, &'static str, Vec<u8>)> {
    let lines = include_str!("captured.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let mut words = line.split(' ');
        let (case, direction, hex) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let bytes = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        (case, direction, bytes.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect())
    })
}

fn message(case: &str, direction: &str) -> Vec<u8> {
    captured().find(|(c, d, _)| (*c, *d) == (case, direction)).unwrap().2
}

fn with_envelope<T>(bytes: &[u8], look: impl FnOnce(Envelope<'_>) -> T) -> T {
    let mut reader = FrameReader::new(MAX_MESSAGE_BYTES);
    let mut source = bytes;
    let Frame { header, body } = reader.read_frame(&mut source).unwrap().unwrap();
    assert_eq!(body.len() + 16, bytes.len());
    let mut decompressor = Decompressor::new();
    look(Envelope::open(header, body, &mut decompressor, MAX_MESSAGE_BYTES).unwrap())
}

fn with_op_msg<T>(bytes: &[u8], look: impl FnOnce(&OpMsg<'_>) -> T) -> T {
    with_envelope(bytes, |envelope| match envelope.parse().unwrap() {
        Message::Msg(msg) => look(&msg),
        other => panic!("{other:?}"),
    })
}

#[test]
fn the_driver_sends_an_insert_as_a_document_sequence() {
    for case in ["plain", "snappy", "zlib", "zstd"] {
        with_op_msg(&message(&format!("{case}-insert"), "request"), |msg| {
            assert_eq!(msg.flags, 0);
            assert_eq!(msg.body[..4], (msg.body.len() as u32).to_le_bytes());
            assert!(msg.body[4..].starts_with(b"\x02insert\0\x02\0\0\0c\0"));
            let [sequence] = &msg.sequences[..] else { panic!("{:?}", msg.sequences) };
            assert_eq!(sequence.identifier, "documents");
            assert_eq!(sequence.documents.len(), 3);
            for document in sequence.documents {
                assert!(document[4..].starts_with(b"\x02_id\0"));
                assert!(document.windows(9).any(|window| window == b"espalier "));
            }
            assert_eq!(msg.sequences.get("documents"), Some(sequence.documents));
            assert_eq!(msg.sequences.get("updates"), None);
        });
    }
}

#[test]
fn every_captured_op_msg_is_written_again_byte_for_byte() {
    let mut seen = 0;
    for (_, _, bytes) in captured() {
        with_envelope(&bytes, |envelope| {
            let Ok(Message::Msg(msg)) = envelope.parse() else { return };
            let mut out = b"before".to_vec();
            let header = envelope.header;
            let mut writer = begin_op_msg(&mut out, header.request_id, header.response_to, msg.flags);
            writer.bytes().extend_from_slice(msg.body);
            for sequence in msg.sequences.iter() {
                let documents = sequence.documents.as_bytes();
                writer.sequence(sequence.identifier, |bytes| bytes.extend_from_slice(documents)).unwrap();
            }
            writer.finish(MAX_MESSAGE_BYTES).unwrap();
            assert_eq!(out[..6], *b"before");
            assert_eq!(out[6..22], header.to_bytes());
            assert_eq!(&out[22..], envelope.payload);
            if envelope.compression.is_none() {
                assert_eq!(out[6..], bytes);
            }
            seen += 1;
        });
    }
    assert_eq!(seen, 18);
}

#[test]
fn compressed_replies_of_the_server_are_compressed_again_to_what_the_driver_can_read() {
    let cases = [("snappy", Compression::Snappy), ("zlib", Compression::Zlib), ("zstd", Compression::Zstd)];
    let mut compressor = Compressor::new();
    for (case, compression) in cases {
        let bytes = message(&format!("{case}-find"), "reply");
        with_envelope(&bytes, |envelope| {
            assert_eq!(envelope.compression, Some(compression));
            assert_eq!(envelope.header.op_code, op_code::OP_MSG);
            let plain = [&envelope.header.to_bytes()[..], envelope.payload].concat();
            let mut packed = Vec::new();
            assert!(compressor.compress(compression, &plain, &mut packed));
            assert!(packed.len() < plain.len() / 2);
            with_envelope(&packed, |again| assert_eq!(again, envelope));
        });
    }
}

#[test]
fn checksums_are_those_of_the_server() {
    for direction in ["request", "reply"] {
        let mut bytes = message("checksum", direction);
        with_op_msg(&bytes, |msg| {
            assert!(msg.has_checksum());
            assert_eq!(msg.flags, flags::CHECKSUM_PRESENT);
        });
        bytes[30] ^= 1;
        with_envelope(&bytes, |envelope| {
            let error = envelope.parse().unwrap_err();
            assert_eq!(error, espalier_wire::WireError::ChecksumMismatch);
            assert!(error.closes_connection());
        });
    }
}

#[test]
fn op_query_and_its_reply() {
    let request = message("query", "request");
    let mut out = Vec::new();
    with_envelope(&request, |envelope| {
        let Ok(Message::Query(query)) = envelope.parse() else { panic!("{:?}", envelope.parse()) };
        assert_eq!(query.full_collection_name, "admin.$cmd");
        assert_eq!(query.command_database(), Some("admin"));
        assert_eq!((query.flags, query.number_to_skip, query.number_to_return), (0, 0, -1));
        assert!(query.query[4..].starts_with(b"\x10ping\0"));
        assert_eq!(query.return_fields, None);
        let mut writer = begin_op_query(&mut out, envelope.header.request_id, 0, "admin.$cmd", 0, -1);
        writer.bytes().extend_from_slice(query.query);
        writer.finish(MAX_MESSAGE_BYTES).unwrap();
    });
    assert_eq!(out, request);

    let reply = message("query", "reply");
    out.clear();
    with_envelope(&reply, |envelope| {
        assert!(envelope.parse().unwrap_err().closes_connection(), "a client may not send OP_REPLY");
        let parsed = OpReply::parse(envelope.payload).unwrap();
        assert_eq!((parsed.flags, parsed.cursor_id, parsed.starting_from), (response_flags::AWAIT_CAPABLE, 0, 0));
        assert_eq!(parsed.documents.len(), 1);
        let header = envelope.header;
        let (id, to) = (header.request_id, header.response_to);
        let mut writer = begin_op_reply(&mut out, id, to, response_flags::AWAIT_CAPABLE, 0, 0, 1);
        writer.bytes().extend_from_slice(parsed.documents.as_bytes());
        writer.finish(MAX_MESSAGE_BYTES).unwrap();
    });
    assert_eq!(out, reply);
}

#[test]
fn all_captured_messages_come_out_of_one_stream_in_any_portions() {
    let all: Vec<Vec<u8>> = captured().map(|(_, _, bytes)| bytes).collect();
    let stream = all.concat();
    for portion in [1, 7, 100, 5000, stream.len()] {
        let mut reader = FrameReader::new(MAX_MESSAGE_BYTES);
        let mut frames = Vec::new();
        for mut bytes in stream.chunks(portion) {
            while !bytes.is_empty() {
                let room = reader.unfilled();
                let count = room.len().min(bytes.len());
                assert!(count > 0);
                room[..count].copy_from_slice(&bytes[..count]);
                bytes = &bytes[count..];
                reader.filled(count);
                while let Some(frame) = reader.next_frame().unwrap() {
                    frames.push([&frame.header.to_bytes()[..], frame.body].concat());
                }
            }
        }
        assert_eq!(frames, all);
        assert!(reader.is_empty());
    }
    let (mut source, mut body, mut count) = (&stream[..], Vec::new(), 0);
    while let Some(header) = read_message(&mut source, &mut body, MAX_MESSAGE_BYTES).unwrap() {
        assert_eq!([&header.to_bytes()[..], &body].concat(), all[count]);
        count += 1;
    }
    assert_eq!(count, all.len());
}
