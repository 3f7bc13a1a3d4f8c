//! A stream of documents, pulled one at a time and lent: no copy is made for a document that only passes through.

use espalier_value::{Path, RawArray, RawDoc, Result, ValueRef};

use crate::expression::Deps;

/// A cursor over documents. `advance` moves to the next; `doc` lends it until the next `advance`.
pub trait Stream: Send {
    /// False at the end, and from then on.
    fn advance(&mut self) -> Result<bool>;

    /// The document that the last successful `advance` moved to.
    fn doc(&self) -> RawDoc<'_>;

    /// Asked before the first `advance` by a reader that reads no more than `deps`. Gives a path if the stream will from
    /// then on lend what differs in its documents apart, instead of writing each of them: a document once, as `doc`, and
    /// the values that come in the place of what it has at the path, as [`Stream::values`].
    fn lend_apart(&mut self, _deps: &Deps) -> Option<Path> {
        None
    }

    /// The values that `doc` stands for as many documents with; `None` if it stands for itself.
    fn values(&self) -> Option<RawArray<'_>> {
        None
    }

    /// Asked before the first `advance` by the `$group` that reads the stream. True if the stream will from then on lend,
    /// in the place of many documents at once, what they add up to in that group, as [`Stream::partial`].
    fn lend_partials(&mut self) -> bool {
        false
    }

    /// `{_id: key, …}` with a partial result of each accumulator, in the place of `doc`; `None` if `doc` stands for itself.
    fn partial(&self) -> Option<RawDoc<'_>> {
        None
    }

    /// Where the store keeps the current document; 0 where that is not known.
    fn record(&self) -> u64 {
        0
    }

    /// Asked before the first `advance`, and after `lend_apart`, by a reader that can read parts of the stream on several
    /// threads at once. If it gives some, the stream itself must not be advanced any more.
    fn parts(&mut self) -> Option<Box<dyn Parts>> {
        None
    }
}

/// The parts that a stream consists of, in order.
pub trait Parts: Send {
    /// `None` at the end.
    fn next(&mut self) -> Result<Option<Box<dyn Stream>>>;
}

/// The parts of a stream that makes its documents each of one of another stream, given the parts of that.
pub(crate) struct MappedParts<F> {
    pub input: Box<dyn Parts>,
    pub map: F,
}

impl<F: FnMut(Box<dyn Stream>) -> Box<dyn Stream> + Send> Parts for MappedParts<F> {
    fn next(&mut self) -> Result<Option<Box<dyn Stream>>> {
        Ok(self.input.next()?.map(&mut self.map))
    }
}

/// A value that is to be thought of in the place of what a document has at a path. What else is read of the document
/// lies below the path or has another top-level field.
#[derive(Clone, Copy, Debug)]
pub struct Replaced<'a> {
    pub path: &'a Path,
    pub value: ValueRef<'a>,
}

impl Replaced<'_> {
    /// Whether a path can be read with the value apart from its document.
    pub(crate) fn allows(path: &Path, read: &Path) -> bool {
        path.first() != read.first() || path.is_prefix_of(read)
    }
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
