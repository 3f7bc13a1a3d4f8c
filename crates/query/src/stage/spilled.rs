//! Keyed documents on disk: sorted runs, written once and read back, and the merging of several.
//!
//! A file is a sequence of records: key length, document length (four bytes each, little-endian), key, document.

use espalier_value::{Error, RawDoc, Result};

use super::sorter::{HeldSource, by_key};
use super::{Spill, SpillFile};

const BUFFER_BYTES: usize = 64 << 10;
const HEADER_BYTES: usize = 8;

/// Keyed documents from somewhere, one at a time.
pub(super) enum Source {
    Held(HeldSource),
    File(Written),
    Merge(Box<Merge>),
}

impl Source {
    pub fn advance(&mut self) -> Result<bool> {
        match self {
            Source::Held(held) => Ok(held.advance()),
            Source::File(file) => file.advance(),
            Source::Merge(merge) => merge.advance(),
        }
    }

    pub fn key(&self) -> &[u8] {
        match self {
            Source::Held(held) => held.key(),
            Source::File(file) => file.key(),
            Source::Merge(merge) => merge.current().map_or(&[], Source::key),
        }
    }

    pub fn doc(&self) -> RawDoc<'_> {
        match self {
            Source::Held(held) => held.doc(),
            Source::File(file) => file.doc(),
            Source::Merge(merge) => merge.current().map_or(RawDoc::EMPTY, Source::doc),
        }
    }
}

/// Writes up to `limit` documents of a source to a file and opens it for reading.
pub(super) fn write_run(spill: &dyn Spill, mut source: Source, limit: Option<usize>) -> Result<Written> {
    let mut writer = Writer::new(spill)?;
    let mut left = limit.unwrap_or(usize::MAX);
    while left > 0 && source.advance()? {
        writer.append(source.key(), source.doc())?;
        left -= 1;
    }
    writer.finish()
}

/// A file that is being written.
pub(super) struct Writer {
    file: Box<dyn SpillFile>,
    buffer: Vec<u8>,
}

impl Writer {
    pub fn new(spill: &dyn Spill) -> Result<Writer> {
        Ok(Writer { file: spill.create()?, buffer: Vec::with_capacity(BUFFER_BYTES) })
    }

    pub fn append(&mut self, key: &[u8], doc: RawDoc<'_>) -> Result<()> {
        let doc = doc.as_bytes();
        self.buffer.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.buffer.extend_from_slice(&(doc.len() as u32).to_le_bytes());
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(doc);
        if self.buffer.len() >= BUFFER_BYTES {
            self.file.append(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<Written> {
        self.file.append(&self.buffer)?;
        self.buffer.clear();
        self.file.rewind()?;
        Ok(Written { file: self.file, buffer: self.buffer, at: 0, next: 0, key_len: 0 })
    }
}

/// A file that is being read.
pub(super) struct Written {
    file: Box<dyn SpillFile>,
    buffer: Vec<u8>,
    /// Where the current record's key starts.
    at: usize,
    /// Where the next record starts.
    next: usize,
    key_len: usize,
}

impl Written {
    /// Back to the first record.
    pub fn rewind(&mut self) -> Result<()> {
        self.buffer.clear();
        (self.at, self.next, self.key_len) = (0, 0, 0);
        self.file.rewind()
    }

    pub fn advance(&mut self) -> Result<bool> {
        if !self.fill(HEADER_BYTES)? {
            return Ok(false);
        }
        let word = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&self.buffer[at..at + 4]);
            u32::from_le_bytes(bytes) as usize
        };
        let (key_len, doc_len) = (word(self.next), word(self.next + 4));
        if !self.fill(HEADER_BYTES + key_len + doc_len)? {
            return Err(damaged());
        }
        self.at = self.next + HEADER_BYTES;
        self.key_len = key_len;
        self.next = self.at + key_len + doc_len;
        Ok(true)
    }

    /// Makes `size` bytes from `next` on available; false at the end of the file.
    fn fill(&mut self, size: usize) -> Result<bool> {
        if self.buffer.len() - self.next >= size {
            return Ok(true);
        }
        self.buffer.drain(..self.next);
        self.next = 0;
        let mut len = self.buffer.len();
        self.buffer.resize(size.max(BUFFER_BYTES), 0);
        while len < size {
            let read = self.file.read(&mut self.buffer[len..])?;
            if read == 0 {
                self.buffer.truncate(len);
                return if len == 0 { Ok(false) } else { Err(damaged()) };
            }
            len += read;
        }
        self.buffer.truncate(len);
        Ok(true)
    }

    pub fn key(&self) -> &[u8] {
        &self.buffer[self.at..self.at + self.key_len]
    }

    pub fn doc(&self) -> RawDoc<'_> {
        RawDoc::trusted(&self.buffer[self.at + self.key_len..self.next])
    }
}

fn damaged() -> Error {
    Error::internal("a temporary file ended in the middle of a document")
}

/// Sorted sources as one. Equal keys come in the order of the sources.
pub(super) struct Merge {
    sources: Vec<Source>,
    /// A heap of indexes of those that stand at a document, least first.
    heap: Vec<usize>,
    started: bool,
}

impl Merge {
    pub fn new(mut sources: Vec<Source>) -> Result<Merge> {
        let mut heap = Vec::with_capacity(sources.len());
        for (at, source) in sources.iter_mut().enumerate() {
            if source.advance()? {
                heap.push(at);
            }
        }
        let mut merge = Merge { sources, heap, started: false };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(at);
        }
        Ok(merge)
    }

    fn advance(&mut self) -> Result<bool> {
        if !self.started {
            self.started = true;
            return Ok(!self.heap.is_empty());
        }
        let Some(&first) = self.heap.first() else { return Ok(false) };
        if !self.sources[first].advance()? {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(!self.heap.is_empty())
    }

    fn current(&self) -> Option<&Source> {
        self.heap.first().map(|&at| &self.sources[at])
    }

    fn less(&self, a: usize, b: usize) -> bool {
        let (x, y) = (self.heap[a], self.heap[b]);
        by_key(&self.sources[x], &self.sources[y]).then(x.cmp(&y)).is_lt()
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut least = at;
            if left < self.heap.len() && self.less(left, least) {
                least = left;
            }
            if right < self.heap.len() && self.less(right, least) {
                least = right;
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}
