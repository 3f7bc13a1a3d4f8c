//! Reading frames from sources that stall, stop and lie; and writers that give up.
#![allow(clippy::unwrap_used)]

use std::io::{self, Read};

use espalier_wire::{
    FrameReader, HEADER_BYTES, Header, MAX_MESSAGE_BYTES, ReadError, WireError, begin_op_msg, flags, op_code,
    read_message,
};

/// Gives what `steps` say, one step a call; then the end.
struct Script<'a>(std::vec::IntoIter<Step<'a>>);

#[derive(Clone, Copy)]
enum Step<'a> {
    Bytes(&'a [u8]),
    Fail(io::ErrorKind),
}

impl<'a> Script<'a> {
    fn new(steps: &[Step<'a>]) -> Self {
        Self(Vec::from(steps).into_iter())
    }
}

impl Read for Script<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.0.next() {
            None => Ok(0),
            Some(Step::Fail(kind)) => Err(kind.into()),
            Some(Step::Bytes(bytes)) => {
                room[..bytes.len()].copy_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }
}

fn frame(body: usize) -> Vec<u8> {
    let message_length = (HEADER_BYTES + body) as i32;
    let header = Header { message_length, request_id: 1, response_to: 0, op_code: op_code::OP_MSG };
    let body: Vec<u8> = (0..body).map(|i| (i % 251) as u8).collect();
    [&header.to_bytes()[..], &body].concat()
}

fn wire_error<T: std::fmt::Debug>(result: Result<T, ReadError>) -> WireError {
    match result.unwrap_err() {
        ReadError::Wire(error) => error,
        ReadError::Io(error) => panic!("{error}"),
    }
}

#[test]
fn a_read_that_timed_out_goes_on_where_it_was() {
    let frame = frame(40);
    let timeout = Step::Fail(io::ErrorKind::WouldBlock);
    let interrupted = Step::Fail(io::ErrorKind::Interrupted);
    let steps = [timeout, Step::Bytes(&frame[..10]), interrupted, Step::Bytes(&frame[10..30]), timeout];
    let mut source = Script::new(&steps);
    let mut reader = FrameReader::new(MAX_MESSAGE_BYTES);
    for expected_empty in [true, false] {
        let error = reader.read_frame(&mut source).unwrap_err();
        assert!(matches!(error, ReadError::Io(error) if error.kind() == io::ErrorKind::WouldBlock));
        assert_eq!(reader.is_empty(), expected_empty);
        reader.release();
    }
    let mut rest = Script::new(&[Step::Bytes(&frame[30..])]);
    assert_eq!(reader.read_frame(&mut rest).unwrap().unwrap().body, &frame[16..]);
    assert!(reader.read_frame(&mut rest).unwrap().is_none());
}

#[test]
fn an_end_between_frames_is_no_error_and_one_inside_is() {
    let whole = frame(40);
    for cut in 0..whole.len() {
        let needed = if cut < HEADER_BYTES { HEADER_BYTES } else { whole.len() };
        let stream = [&whole[..], &whole[..cut]].concat();
        let mut source = &stream[..];
        let mut reader = FrameReader::new(MAX_MESSAGE_BYTES);
        assert!(reader.read_frame(&mut source).unwrap().is_some());
        let (mut again, mut body) = (&stream[..], Vec::new());
        assert!(read_message(&mut again, &mut body, MAX_MESSAGE_BYTES).unwrap().is_some());
        if cut == 0 {
            assert!(reader.read_frame(&mut source).unwrap().is_none());
            assert!(read_message(&mut again, &mut body, MAX_MESSAGE_BYTES).unwrap().is_none());
        } else {
            let expected = WireError::UnexpectedEnd { needed, received: cut };
            assert_eq!(wire_error(reader.read_frame(&mut source)), expected);
            assert_eq!(wire_error(read_message(&mut again, &mut body, MAX_MESSAGE_BYTES)), expected);
        }
    }
}

#[test]
fn a_length_outside_the_limits_is_found_as_soon_as_the_header_is_there() {
    for length in [-1, 0, 15, 101] {
        let mut stream = frame(0);
        stream[..4].copy_from_slice(&i32::to_le_bytes(length));
        let expected = WireError::MessageLength { length, max: 100 };
        assert_eq!(wire_error(FrameReader::new(100).read_frame(&mut &stream[..])), expected);
        assert_eq!(wire_error(read_message(&mut &stream[..], &mut Vec::new(), 100)), expected);
        assert!(expected.closes_connection());
    }
    let mut reader = FrameReader::new(100);
    assert!(reader.read_frame(&mut &frame(0)[..]).unwrap().unwrap().body.is_empty());
    assert!(reader.read_frame(&mut &frame(84)[..]).unwrap().is_some());
    reader.set_message_bytes_max(101);
    assert!(reader.read_frame(&mut &frame(85)[..]).unwrap().is_some());
}

#[test]
fn room_grows_with_what_is_received_and_not_with_what_is_announced() {
    let announced = frame(10_000_000);
    let mut reader = FrameReader::new(MAX_MESSAGE_BYTES);
    assert_eq!(reader.unfilled().len(), 4096);
    let mut received = 0;
    while received < announced.len() {
        let room = reader.unfilled();
        assert!(!room.is_empty());
        assert!(received + room.len() <= (2 * received).max(4096), "{} bytes of room after {received}", room.len());
        // A trickle at first, then as much as there is room for.
        let count = if received < 100 { 1 } else { room.len() };
        room[..count].copy_from_slice(&announced[received..received + count]);
        received += count;
        reader.filled(count);
    }
    assert_eq!(reader.next_frame().unwrap().unwrap().body, &announced[16..]);
    assert!(reader.next_frame().unwrap().is_none());

    let mut body = Vec::new();
    let error = wire_error(read_message(&mut &announced[..100], &mut body, MAX_MESSAGE_BYTES));
    assert_eq!(error, WireError::UnexpectedEnd { needed: announced.len(), received: 100 });
    assert!(body.capacity() <= 4096);
}

#[test]
fn the_room_of_a_large_message_is_given_back() {
    let (large, small) = (frame(2_000_000), frame(100));
    let mut reader = FrameReader::new(MAX_MESSAGE_BYTES);
    for bytes in [&large, &large, &small] {
        assert!(reader.read_frame(&mut &bytes[..]).unwrap().is_some());
    }
    assert!(reader.unfilled().len() <= espalier_wire::RETAINED_BYTES);
    assert!(reader.read_frame(&mut &large[..]).unwrap().is_some());
    reader.release();
    assert_eq!(reader.unfilled().len(), 4096);
}

#[test]
fn a_message_that_is_not_finished_leaves_no_trace() {
    let mut out = b"earlier".to_vec();
    let mut writer = begin_op_msg(&mut out, 1, 2, 0);
    writer.bytes().extend_from_slice(&[5, 0, 0, 0, 0]);
    assert_eq!(writer.message_bytes(), 26);
    drop(writer);
    assert_eq!(out, b"earlier");

    for (flags, length) in [(0, 26), (flags::CHECKSUM_PRESENT, 30)] {
        let mut writer = begin_op_msg(&mut out, 1, 2, flags);
        writer.bytes().extend_from_slice(&[5, 0, 0, 0, 0]);
        assert_eq!(writer.finish(length - 1), Err(WireError::ReplyTooLarge { length, max: length - 1 }));
        assert_eq!(out, b"earlier");
        let mut writer = begin_op_msg(&mut out, 1, 2, flags);
        writer.bytes().extend_from_slice(&[5, 0, 0, 0, 0]);
        writer.finish(length).unwrap();
        assert_eq!(out.len(), 7 + length);
        out.truncate(7);
    }
}

#[test]
fn flags_can_be_added_once_the_body_is_written() {
    let mut out = Vec::new();
    let mut writer = begin_op_msg(&mut out, 1, 2, flags::CHECKSUM_PRESENT);
    writer.bytes().extend_from_slice(&[5, 0, 0, 0, 0]);
    writer.add_flags(flags::MORE_TO_COME);
    writer.finish(100).unwrap();
    let (header, payload) = out.split_first_chunk().unwrap();
    let msg = espalier_wire::OpMsg::parse(&Header::from_bytes(header), payload).unwrap();
    assert!(msg.more_to_come() && msg.has_checksum() && !msg.exhaust_allowed());
}
