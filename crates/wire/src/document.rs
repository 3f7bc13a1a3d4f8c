//! Documents as byte slices: the outer length is checked, the contents are not looked at.

use std::iter::FusedIterator;

use crate::WireError;
use crate::bytes::split_i32;

/// The length of an empty document: its own length field and the closing NUL.
const DOCUMENT_BYTES_MIN: usize = 5;

/// Takes one document off the front of `bytes`.
pub(crate) fn split_document(bytes: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let available = bytes.len();
    let Some((length, _)) = split_i32(bytes) else {
        return Err(WireError::DocumentLength { length: DOCUMENT_BYTES_MIN as i32, available });
    };
    let Ok(size) = usize::try_from(length) else { return Err(WireError::DocumentTooShort { length }) };
    if size < DOCUMENT_BYTES_MIN {
        return Err(WireError::DocumentTooShort { length });
    }
    let Some((document, rest)) = bytes.split_at_checked(size) else {
        return Err(WireError::DocumentLength { length, available });
    };
    if document.last() != Some(&0) {
        return Err(WireError::DocumentNotTerminated);
    }
    Ok((document, rest))
}

/// Documents one after the other.
///
/// The outer lengths were checked when this was made, so that walking it cannot fail and its length is known.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Documents<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Documents<'a> {
    /// Checks that `bytes` is a row of whole documents and nothing else.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (mut rest, mut count) = (bytes, 0);
        while !rest.is_empty() {
            rest = split_document(rest)?.1;
            count += 1;
        }
        Ok(Self { bytes, count })
    }

    /// The documents not yet taken, as they are on the wire.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Documents<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (document, rest) = split_document(self.bytes).ok()?;
        self.bytes = rest;
        self.count -= 1;
        Some(document)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Documents<'_> {}
impl FusedIterator for Documents<'_> {}

impl std::fmt::Debug for Documents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];

    #[test]
    fn a_row_of_documents_is_walked_in_order() {
        let one = [8, 0, 0, 0, 10, b'a', 0, 0];
        let row = [&EMPTY[..], &one, &EMPTY].concat();
        let documents = Documents::new(&row).unwrap();
        assert_eq!(documents.len(), 3);
        assert_eq!(documents.collect::<Vec<_>>(), [&EMPTY[..], &one, &EMPTY]);
        assert_eq!(Documents::new(&[]).unwrap().next(), None);
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let short = |bytes: &[u8]| Documents::new(bytes).unwrap_err();
        assert_eq!(short(&[5, 0, 0]), WireError::DocumentLength { length: 5, available: 3 });
        assert_eq!(short(&[4, 0, 0, 0]), WireError::DocumentTooShort { length: 4 });
        assert_eq!(short(&[255; 8]), WireError::DocumentTooShort { length: -1 });
        assert_eq!(short(&[6, 0, 0, 0, 0]), WireError::DocumentLength { length: 6, available: 5 });
        assert_eq!(short(&[5, 0, 0, 0, 1]), WireError::DocumentNotTerminated);
        assert_eq!(short(&[5, 0, 0, 0, 0, 0]), WireError::DocumentLength { length: 5, available: 1 });
    }
}
