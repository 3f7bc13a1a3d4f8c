//! OP_COMPRESSED: whatever a client announces, no more is written and no more memory is held than the limit allows.
#![allow(clippy::unwrap_used)]

use espalier_wire::{
    Compression, Compressor, Decompressor, Envelope, HEADER_BYTES, Header, WireError, begin_op_msg, op_code,
};

const MAX: usize = 1 << 20;

/// An OP_MSG whose body is a document of `size` bytes, each from `fill`.
fn message(size: usize, fill: impl FnMut(usize) -> u8) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = begin_op_msg(&mut out, 7, 3, 0);
    let filler: Vec<u8> = (0..size - 5).map(fill).collect();
    writer.bytes().extend_from_slice(&(size as u32).to_le_bytes());
    writer.bytes().extend_from_slice(&filler);
    writer.bytes().push(0);
    writer.finish(MAX).unwrap();
    out
}

fn packed(compression: Compression, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(Compressor::new().compress(compression, message, &mut out));
    out
}

fn open<'a>(frame: &'a [u8], decompressor: &'a mut Decompressor, max: usize) -> Result<Envelope<'a>, WireError> {
    let (header, body) = frame.split_first_chunk::<HEADER_BYTES>().unwrap();
    Envelope::open(Header::from_bytes(header), body, decompressor, max)
}

fn set_i32(frame: &mut [u8], at: usize, value: i32) {
    frame[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn every_compressor_gives_back_what_it_took() {
    let (mut compressor, mut decompressor) = (Compressor::new(), Decompressor::new());
    // Twice, so that the reused state is seen to start afresh; sizes up and down, so that the buffer is too.
    for size in [500, 5, 300_000, 900_000, 64, 70_000, 500, 300_000] {
        let message = message(size, |i| (i / 7) as u8);
        for compression in Compression::ALL {
            let mut out = b"earlier".to_vec();
            if !compressor.compress(compression, &message, &mut out) {
                assert!(size < 100, "{size} bytes should get shorter by {compression:?}");
                assert_eq!(out, b"earlier");
                continue;
            }
            assert!(compression == Compression::Noop || out.len() - 7 < message.len());
            let envelope = open(&out[7..], &mut decompressor, MAX).unwrap();
            assert_eq!(envelope.compression, Some(compression));
            assert_eq!(envelope.header.to_bytes(), message[..HEADER_BYTES]);
            assert_eq!(envelope.payload, &message[HEADER_BYTES..]);
            assert!(envelope.parse().is_ok());
        }
    }
}

#[test]
fn what_cannot_get_shorter_is_left_alone() {
    let mut state = 1u64;
    let noise = message(10_000, |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u8
    });
    let mut compressor = Compressor::new();
    for compression in [Compression::Snappy, Compression::Zlib, Compression::Zstd] {
        let mut out = b"earlier".to_vec();
        assert!(!compressor.compress(compression, &noise, &mut out));
        assert_eq!(out, b"earlier");
        assert!(compressor.compress(compression, &message(1000, |_| 1), &mut out), "and the state is not spoilt");
    }
}

#[test]
fn only_whole_uncompressed_messages_are_wrapped() {
    let whole = message(1000, |_| 1);
    let mut compressor = Compressor::new();
    let wrapped = packed(Compression::Noop, &whole);
    for wrong in [&whole[..15], &whole[..whole.len() - 1], &wrapped, &[]] {
        let mut out = Vec::new();
        assert!(!compressor.compress(Compression::Noop, wrong, &mut out));
        assert!(out.is_empty());
    }
}

#[test]
fn the_announced_size_must_be_exact() {
    let message = message(3000, |i| (i % 5) as u8);
    let size = (message.len() - HEADER_BYTES) as i32;
    let mut decompressor = Decompressor::new();
    for compression in Compression::ALL {
        let frame = packed(compression, &message);
        for announced in [0, 1, size - 1, size + 1, size + 100] {
            let mut wrong = frame.clone();
            set_i32(&mut wrong, 20, announced);
            let error = open(&wrong, &mut decompressor, MAX).unwrap_err();
            assert_eq!(error, WireError::Decompression { compression, announced: announced as usize });
            assert!(error.closes_connection());
        }
        for wrong in [&[&frame[..], &[0]].concat(), &frame[..frame.len() - 1], &frame[..25]] {
            assert!(matches!(open(wrong, &mut decompressor, MAX), Err(WireError::Decompression { .. })));
        }
        assert!(open(&frame, &mut decompressor, MAX).is_ok(), "and the state is not spoilt");
    }
}

#[test]
fn the_announced_size_is_checked_before_anything_is_done() {
    let message = message(3000, |_| 1);
    let size = message.len() - HEADER_BYTES;
    let mut decompressor = Decompressor::new();
    for compression in Compression::ALL {
        let mut frame = packed(compression, &message);
        assert!(open(&frame, &mut decompressor, message.len()).is_ok());
        let error = open(&frame, &mut decompressor, message.len() - 1).unwrap_err();
        assert_eq!(error, WireError::UncompressedSize { announced: size as i32, max: message.len() - 1 });
        for announced in [-1, i32::MIN, i32::MAX, i32::MAX - 15, MAX as i32 - 15] {
            set_i32(&mut frame, 20, announced);
            let error = open(&frame, &mut decompressor, MAX).unwrap_err();
            assert_eq!(error, WireError::UncompressedSize { announced, max: MAX });
        }
        // No limit at all must not be a way to a panic either.
        set_i32(&mut frame, 20, i32::MAX);
        assert!(open(&frame, &mut decompressor, usize::MAX).is_err());
    }
}

#[test]
fn a_size_that_the_data_cannot_reach_costs_nothing() {
    for compression in Compression::ALL {
        let frame = [
            &[0; 12],
            &op_code::OP_COMPRESSED.to_le_bytes()[..],
            &op_code::OP_MSG.to_le_bytes(),
            &40_000_000i32.to_le_bytes(),
            &[compression.id(), 1, 2, 3, 4],
        ]
        .concat();
        let mut decompressor = Decompressor::new();
        assert!(matches!(open(&frame, &mut decompressor, 48_000_000), Err(WireError::Decompression { .. })));
        assert!(format!("{decompressor:?}").contains("room: 0"), "{decompressor:?}");
    }
}

#[test]
fn the_best_compressible_message_is_within_the_bound_on_expansion() {
    let message = message(MAX - 100, |_| 0);
    for compression in Compression::ALL {
        assert!(open(&packed(compression, &message), &mut Decompressor::new(), MAX).is_ok(), "{compression:?}");
    }
}

#[test]
fn nesting_and_unknown_compressors_are_refused() {
    let message = message(1000, |_| 1);
    let mut frame = packed(Compression::Zlib, &message);
    frame[24] = 4;
    assert_eq!(open(&frame, &mut Decompressor::new(), MAX), Err(WireError::UnknownCompressor(4)));
    frame[24] = 2;
    set_i32(&mut frame, 16, op_code::OP_COMPRESSED);
    assert_eq!(open(&frame, &mut Decompressor::new(), MAX), Err(WireError::NestedCompression));
    for length in HEADER_BYTES..HEADER_BYTES + 9 {
        assert_eq!(open(&frame[..length], &mut Decompressor::new(), MAX), Err(WireError::CompressedTooShort));
    }
}

#[test]
fn memory_goes_back_when_messages_get_small_again_or_the_connection_falls_idle() {
    let (large, small) = (message(900_000, |_| 1), message(1000, |_| 1));
    let mut decompressor = Decompressor::new();
    open(&packed(Compression::Zstd, &large), &mut decompressor, MAX).unwrap();
    assert!(format!("{decompressor:?}").contains("room: 900005"), "{decompressor:?}");
    open(&packed(Compression::Zstd, &small), &mut decompressor, MAX).unwrap();
    assert!(format!("{decompressor:?}").contains("room: 262144"), "{decompressor:?}");
    decompressor.release();
    assert!(format!("{decompressor:?}").contains("room: 0"), "{decompressor:?}");
}
