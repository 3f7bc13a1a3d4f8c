//! Taking little-endian integers and C strings off the front of a slice; `None` means that the slice is too short.

pub(crate) fn split_u8(bytes: &[u8]) -> Option<(u8, &[u8])> {
    bytes.split_first().map(|(first, rest)| (*first, rest))
}

pub(crate) fn split_i32(bytes: &[u8]) -> Option<(i32, &[u8])> {
    bytes.split_first_chunk().map(|(first, rest)| (i32::from_le_bytes(*first), rest))
}

pub(crate) fn split_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk().map(|(first, rest)| (u32::from_le_bytes(*first), rest))
}

pub(crate) fn split_i64(bytes: &[u8]) -> Option<(i64, &[u8])> {
    bytes.split_first_chunk().map(|(first, rest)| (i64::from_le_bytes(*first), rest))
}

/// The bytes before the first NUL, and those after it.
pub(crate) fn split_c_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}
