//! A stream of documents, pulled one at a time and lent: no copy is made for a document that only passes through.

use espalier_value::{RawDoc, Result};

/// A cursor over documents. `advance` moves to the next; `doc` lends it until the next `advance`.
pub trait Stream: Send {
    /// False at the end, and from then on.
    fn advance(&mut self) -> Result<bool>;

    /// The document that the last successful `advance` moved to.
    fn doc(&self) -> RawDoc<'_>;
}

/// Documents held in memory, in order.
pub struct Buffered {
    docs: std::vec::IntoIter<espalier_value::DocBuf>,
    current: espalier_value::DocBuf,
}

impl Buffered {
    pub fn new(docs: Vec<espalier_value::DocBuf>) -> Buffered {
        Buffered { docs: docs.into_iter(), current: espalier_value::DocBuf::new() }
    }
}

impl Stream for Buffered {
    fn advance(&mut self) -> Result<bool> {
        match self.docs.next() {
            Some(doc) => {
                self.current = doc;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }
}
