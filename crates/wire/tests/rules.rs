//! The rules of each message form, one by one, with the fate of the connection that mongod 6.0.5 gives each breach.
#![allow(clippy::unwrap_used)]

use espalier_wire::{
    Decompressor, Envelope, HEADER_BYTES, Header, Message, OpReply, WireError, begin_op_msg, begin_op_query,
    begin_op_reply, flags, op_code,
};

const MAX: usize = 1000;
const EMPTY: &[u8] = &[5, 0, 0, 0, 0];
const PING: &[u8] = b"\x0f\0\0\0\x10ping\0\x01\0\0\0\0";

fn header(op_code: i32, payload: &[u8]) -> Header {
    Header { message_length: (payload.len() + HEADER_BYTES) as i32, request_id: 7, response_to: 0, op_code }
}

fn error_of(op_code: i32, payload: &[u8]) -> WireError {
    Message::parse(header(op_code, payload), payload, &mut Decompressor::new(), MAX).unwrap_err()
}

fn op_msg(flags: u32, sections: &[&[u8]]) -> Vec<u8> {
    [&flags.to_le_bytes(), sections.concat().as_slice()].concat()
}

fn op_msg_error(flags: u32, sections: &[&[u8]]) -> WireError {
    error_of(op_code::OP_MSG, &op_msg(flags, sections))
}

fn body(document: &[u8]) -> Vec<u8> {
    [&[0], document].concat()
}

/// A section of kind 1 that announces `extra` more bytes than it has.
fn sequence_of(identifier: &[u8], documents: &[u8], extra: i32) -> Vec<u8> {
    let size = (4 + identifier.len() + documents.len()) as i32 + extra;
    [&[1], &size.to_le_bytes()[..], identifier, documents].concat()
}

fn sequence(identifier: &str, documents: &[u8]) -> Vec<u8> {
    sequence_of(format!("{identifier}\0").as_bytes(), documents, 0)
}

#[test]
fn sections_come_in_any_order() {
    let payload = op_msg(0, &[&sequence("documents", &[EMPTY, PING].concat()), &body(PING), &sequence("more", b"")]);
    let mut decompressor = Decompressor::new();
    let message = Message::parse(header(op_code::OP_MSG, &payload), &payload, &mut decompressor, MAX).unwrap();
    let Message::Msg(msg) = message else { panic!("{message:?}") };
    assert_eq!(msg.body, PING);
    assert_eq!(msg.sequences.iter().map(|sequence| sequence.identifier).collect::<Vec<_>>(), ["documents", "more"]);
    assert_eq!(msg.sequences.get("documents").unwrap().collect::<Vec<_>>(), [EMPTY, PING]);
    assert_eq!(msg.sequences.get("more").unwrap().len(), 0);
}

#[test]
fn exactly_one_body() {
    assert_eq!(op_msg_error(0, &[]), WireError::MissingBody);
    assert_eq!(op_msg_error(0, &[&sequence("documents", EMPTY)]), WireError::MissingBody);
    assert_eq!(op_msg_error(0, &[&body(PING), &body(PING)]), WireError::MultipleBodies);
    assert_eq!(WireError::MissingBody.reply_code(), Some(40587));
    assert_eq!(WireError::MultipleBodies.reply_code(), Some(40430));
}

#[test]
fn section_kinds_other_than_0_and_1() {
    assert_eq!(op_msg_error(0, &[&[2], PING]).reply_code(), Some(13));
    let unknown = op_msg_error(0, &[&[3], PING]);
    assert_eq!((unknown.to_string().as_str(), unknown.reply_code()), ("Unknown section kind 3", Some(40432)));
}

#[test]
fn flags_that_must_be_known_and_flags_that_need_not_be() {
    for bit in 2..16 {
        let error = op_msg_error(1 << bit, &[&body(PING)]);
        assert_eq!(error, WireError::UnknownFlags(1 << bit));
        assert!(error.closes_connection());
    }
    for bit in (16..32).chain([1]) {
        let payload = op_msg(1 << bit, &[&body(PING)]);
        let mut decompressor = Decompressor::new();
        let message = Message::parse(header(op_code::OP_MSG, &payload), &payload, &mut decompressor, MAX).unwrap();
        let Message::Msg(msg) = message else { panic!("{message:?}") };
        assert_eq!(msg.flags, 1 << bit);
        assert_eq!(msg.more_to_come(), msg.flags == flags::MORE_TO_COME);
        assert_eq!(msg.exhaust_allowed(), msg.flags == flags::EXHAUST_ALLOWED);
    }
    assert_eq!(error_of(op_code::OP_MSG, &[0, 0, 0]), WireError::OpMsgTooShort);
    assert_eq!(op_msg_error(flags::CHECKSUM_PRESENT, &[&[1, 2, 3]]), WireError::OpMsgTooShort);
    assert!(WireError::OpMsgTooShort.closes_connection());
}

#[test]
fn the_checksum_covers_the_header_too() {
    let mut out = Vec::new();
    let mut writer = begin_op_msg(&mut out, 7, 3, flags::CHECKSUM_PRESENT);
    writer.bytes().extend_from_slice(PING);
    writer.finish(MAX).unwrap();
    let (header, payload) = out.split_first_chunk().unwrap();
    let header = Header::from_bytes(header);
    assert!(Message::parse(header, payload, &mut Decompressor::new(), MAX).is_ok());
    let other = Header { request_id: 8, ..header };
    let error = Message::parse(other, payload, &mut Decompressor::new(), MAX).unwrap_err();
    assert_eq!(error, WireError::ChecksumMismatch);
}

#[test]
fn document_sequences() {
    let with = |section: &[u8]| op_msg_error(0, &[&body(PING), section]);
    let documents = sequence("documents", EMPTY);
    let duplicate = op_msg_error(0, &[&body(PING), &documents, &documents]);
    assert_eq!(duplicate.to_string(), "Duplicate document sequence: documents");
    assert_eq!(duplicate.reply_code(), Some(40431));
    let many = op_msg_error(0, &[&body(PING), &sequence("a", b""), &sequence("b", b""), &sequence("c", b"")]);
    assert_eq!(many, WireError::TooManySequences { max: 2 });
    assert!(many.closes_connection());

    let available = documents.len() - 1;
    assert_eq!(with(&sequence_of(b"documents\0", EMPTY, 1)), WireError::SequenceLength { size: 20, available });
    assert_eq!(with(&sequence_of(b"documents\0", EMPTY, -19)), WireError::SequenceLength { size: 0, available });
    assert_eq!(with(&sequence_of(b"documents\0", EMPTY, -20)), WireError::SequenceLength { size: -1, available });
    assert_eq!(with(&[1, 9, 0]), WireError::SequenceLength { size: 0, available: 2 });
    assert_eq!(with(&sequence_of(b"documents", b"", 0)), WireError::SequenceIdentifier);
    assert_eq!(with(&sequence_of(b"\xff\0", b"", 0)), WireError::SequenceIdentifier);
    // The NUL of the identifier is to be found in the section and not in what follows it.
    assert_eq!(with(&sequence_of(b"documents\0", EMPTY, -6)), WireError::SequenceIdentifier);
    assert_eq!(WireError::SequenceIdentifier.reply_code(), Some(15));
    assert_eq!(with(&sequence_of(b"documents\0", EMPTY, 1)).reply_code(), Some(15));

    let cut = with(&sequence("documents", &EMPTY[..4]));
    assert_eq!((&cut, cut.reply_code()), (&WireError::DocumentLength { length: 5, available: 4 }, Some(22)));
    // A document may not reach into the next section.
    let reaching = sequence_of(b"documents\0", EMPTY, -1);
    assert_eq!(with(&reaching), WireError::DocumentLength { length: 5, available: 4 });
}

#[test]
fn body_documents_keep_to_their_section() {
    assert_eq!(op_msg_error(0, &[&[0]]), WireError::DocumentLength { length: 5, available: 0 });
    assert_eq!(op_msg_error(0, &[&body(&[4, 0, 0, 0])]).reply_code(), Some(22));
    assert_eq!(op_msg_error(0, &[&body(&PING[..14])]), WireError::DocumentLength { length: 15, available: 14 });
    assert_eq!(op_msg_error(0, &[&body(&[5, 0, 0, 0, 9])]), WireError::DocumentNotTerminated);
    assert_eq!(op_msg_error(0, &[&body(PING), &[9]]), WireError::UnknownSection(9));
}

#[test]
fn legacy_operations_are_refused_by_name() {
    use op_code::*;
    let codes = [OP_REPLY, OP_UPDATE, OP_INSERT, OP_DELETE, OP_KILL_CURSORS];
    for code in codes {
        let error = error_of(code, EMPTY);
        assert_eq!(error, WireError::UnsupportedOpCode(code));
        assert!(error.to_string().starts_with(name(code).unwrap()), "{error}");
        assert!(error.closes_connection());
    }
    let get_more = error_of(OP_GET_MORE, EMPTY);
    assert!(get_more.to_string().starts_with("OP_GET_MORE is no longer supported"));
    assert_eq!(get_more.reply_code(), Some(5_739_101), "this one had a reply, so the client can be told");
    assert_eq!(error_of(9999, EMPTY).to_string(), "unknown operation code 9999");
}

#[test]
fn op_query_fields() {
    let mut out = Vec::new();
    let mut writer = begin_op_query(&mut out, 1, 4, "shop.$cmd", 2, -1);
    writer.bytes().extend_from_slice(PING);
    writer.bytes().extend_from_slice(EMPTY);
    writer.finish(MAX).unwrap();
    let payload = &out[HEADER_BYTES..];
    let mut decompressor = Decompressor::new();
    let message = Message::parse(header(op_code::OP_QUERY, payload), payload, &mut decompressor, MAX).unwrap();
    let Message::Query(query) = message else { panic!("{message:?}") };
    assert_eq!((query.flags, query.number_to_skip, query.number_to_return), (4, 2, -1));
    assert_eq!((query.query, query.return_fields), (PING, Some(EMPTY)));
    assert_eq!(query.command_database(), Some("shop"));
    assert_eq!(espalier_wire::OpQuery { full_collection_name: "shop.orders", ..query }.command_database(), None);
    assert_eq!(espalier_wire::OpQuery { full_collection_name: ".$cmd", ..query }.command_database(), None);

    for length in 0..4 + 10 + 8 {
        assert_eq!(error_of(op_code::OP_QUERY, &payload[..length]), WireError::Truncated(op_code::OP_QUERY));
    }
    assert!(WireError::Truncated(op_code::OP_QUERY).closes_connection());
    assert_eq!(error_of(op_code::OP_QUERY, &payload[..payload.len() - 1]).reply_code(), Some(22));
    let trailing = [payload, &[0]].concat();
    assert_eq!(error_of(op_code::OP_QUERY, &trailing), WireError::TrailingBytes(op_code::OP_QUERY));
    let mut not_utf8 = payload.to_vec();
    not_utf8[4] = 0xff;
    assert_eq!(error_of(op_code::OP_QUERY, &not_utf8), WireError::CollectionName);
}

#[test]
fn op_reply_must_hold_what_it_announces() {
    for (announced, expected) in [
        (1, Err(WireError::TrailingBytes(op_code::OP_REPLY))),
        (2, Ok(2)),
        (3, Err(WireError::Truncated(op_code::OP_REPLY))),
        (-1, Err(WireError::Truncated(op_code::OP_REPLY))),
    ] {
        let mut out = Vec::new();
        let mut writer = begin_op_reply(&mut out, 1, 7, 8, -9, 0, announced);
        writer.bytes().extend_from_slice(EMPTY);
        writer.bytes().extend_from_slice(PING);
        writer.finish(MAX).unwrap();
        let reply = OpReply::parse(&out[HEADER_BYTES..]);
        assert_eq!(reply.clone().map(|reply| reply.documents.len()), expected);
        if let Ok(reply) = reply {
            assert_eq!((reply.flags, reply.cursor_id), (8, -9));
        }
    }
    assert_eq!(OpReply::parse(&[0; 19]), Err(WireError::Truncated(op_code::OP_REPLY)));
}

#[test]
fn what_is_needed_for_an_error_reply_is_known_before_parsing() {
    let payload = op_msg(flags::MORE_TO_COME, &[]);
    let mut decompressor = Decompressor::new();
    let envelope = Envelope::open(header(op_code::OP_MSG, &payload), &payload, &mut decompressor, MAX).unwrap();
    assert_eq!(envelope.parse(), Err(WireError::MissingBody));
    assert_eq!(envelope.op_msg_flags(), Some(flags::MORE_TO_COME));
    assert_eq!(envelope.compression, None);
    let envelope = Envelope::open(header(op_code::OP_QUERY, &payload), &payload, &mut decompressor, MAX).unwrap();
    assert_eq!(envelope.op_msg_flags(), None);
}
