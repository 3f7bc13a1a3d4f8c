//! Documents gathered as they are, or what is needed of them: for readers that know nothing of parts.

use std::sync::Arc;

use espalier_value::{RawDoc, Result};

use super::{Gather, Made};
use crate::helpers::Helpers;
use crate::stream::{Parts, Stream};

/// What may lie ready of one part.
const BYTES_MAX: usize = 512 << 10;

/// Copies of documents, one behind the other.
#[derive(Default)]
pub struct Docs {
    bytes: Vec<u8>,
    /// Where each ends, and where the store keeps it.
    ends: Vec<(usize, u64)>,
}

impl Docs {
    /// Copies documents until the part ends or there are enough. With `fields` nothing else is kept of them.
    fn read(part: &mut dyn Stream, fields: Option<&[Box<str>]>) -> Result<Made<Docs>> {
        let mut docs = Docs::default();
        while docs.bytes.len() < BYTES_MAX {
            if !part.advance()? {
                return Ok(Made { made: docs, more: false });
            }
            copy(part.doc(), fields, &mut docs.bytes);
            docs.ends.push((docs.bytes.len(), part.record()));
        }
        Ok(Made { made: docs, more: true })
    }

    fn doc(&self, at: usize) -> RawDoc<'_> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        RawDoc::trusted(&self.bytes[start..self.ends[at].0])
    }
}

/// Appends a document, or only these of its top-level fields.
pub(crate) fn copy(doc: RawDoc<'_>, fields: Option<&[Box<str>]>, out: &mut Vec<u8>) {
    let Some(fields) = fields else { return out.extend_from_slice(doc.as_bytes()) };
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    // Fields of one name may be several; a document has few that are needed, so all are looked at.
    for elem in doc {
        if fields.iter().any(|field| field.as_bytes() == elem.name_bytes()) {
            out.extend_from_slice(elem.raw());
        }
    }
    out.push(0);
    let len = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// The documents of all parts, in order.
pub struct Gathered {
    gather: Gather<Docs>,
    docs: Docs,
    /// One past the current one.
    next: usize,
}

impl Gathered {
    pub fn new(parts: Box<dyn Parts>, helpers: Arc<dyn Helpers>, fields: Option<Vec<Box<str>>>) -> Gathered {
        let gather = Gather::new(parts, helpers, move |part| Docs::read(part, fields.as_deref()));
        Gathered { gather, docs: Docs::default(), next: 0 }
    }
}

impl Stream for Gathered {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        while self.next == self.docs.ends.len() {
            self.next = 0;
            match self.gather.next()? {
                Some(docs) => self.docs = docs,
                None => {
                    self.docs = Docs::default();
                    return Ok(false);
                }
            }
        }
        self.next += 1;
        Ok(true)
    }

    #[inline]
    fn doc(&self) -> RawDoc<'_> {
        self.next.checked_sub(1).map_or(RawDoc::EMPTY, |at| self.docs.doc(at))
    }
    fn record(&self) -> u64 {
        self.next.checked_sub(1).map_or(0, |at| self.docs.ends[at].1)
    }
}
