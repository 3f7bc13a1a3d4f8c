//! Sorting documents by memcomparable keys, in memory as long as they fit and then on disk.
//!
//! Keys and documents are copied into large chunks; what is sorted are small entries that point there and carry the
//! key's first sixteen bytes. Equal keys keep the order in which they came. If only the first so many are wanted, the
//! rest is thrown away every now and then, and what cannot get in any more is not even copied.

use std::cmp::Ordering;
use std::sync::Arc;

use espalier_value::{Code, Error, RawDoc, Result};

use super::spilled::{Merge, Source, Written, write_run};
use super::{Run, Spill};

/// Chunks are this large, but for a single document that is larger.
const CHUNK_BYTES: usize = 1 << 20;
/// Those of a part.
const PART_CHUNK_BYTES: usize = 64 << 10;
/// Files that are merged at once; beyond, they are merged into one first, so that few are open.
const FILES_MAX: usize = 128;

/// Takes documents with their keys and gives them back in order.
pub struct Sorter {
    held: Held,
    /// Only so many are wanted.
    limit: Option<usize>,
    /// With `limit`: keys from here on cannot get in any more.
    bound: Option<Vec<u8>>,
    memory_bytes_max: usize,
    spill: Option<Arc<dyn Spill>>,
    files: Vec<Written>,
    /// The stage, for messages.
    name: &'static str,
}

impl Sorter {
    /// `name` is who sorts, for messages.
    pub fn new(name: &'static str, limit: Option<u64>, run: &Run) -> Sorter {
        Sorter {
            held: Held::default(),
            limit: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            bound: None,
            memory_bytes_max: run.limits.stage_memory_bytes_max,
            spill: run.spill.clone(),
            files: Vec::new(),
            name,
        }
    }

    /// Keys from here on are thrown away.
    #[inline]
    pub fn bound(&self) -> Option<&[u8]> {
        self.bound.as_deref()
    }

    pub fn push(&mut self, key: &[u8], doc: RawDoc<'_>) -> Result<()> {
        if self.bound.as_ref().is_some_and(|bound| key >= bound.as_slice()) {
            return Ok(());
        }
        self.held.push(key, doc, CHUNK_BYTES);
        if let Some(limit) = self.limit {
            let slack = limit.clamp(1 << 10, 1 << 20);
            if self.held.entries.len() >= limit.saturating_add(slack) {
                self.cut(limit);
            }
        }
        if self.held.memory_bytes() > self.memory_bytes_max {
            self.make_room()?;
        }
        Ok(())
    }

    /// Takes what a part of the input has, after all that was taken before.
    pub fn absorb(&mut self, part: SortedPart) -> Result<()> {
        if let Some(limit) = self.limit {
            // In order, so that nothing gets in after the first that does not.
            for entry in &part.held.entries {
                if self.bound.as_ref().is_some_and(|bound| part.held.key(entry) >= bound.as_slice()) {
                    break;
                }
                self.push(part.held.key(entry), part.held.doc(entry))?;
            }
            // Soon, since those who read ahead want to know the bound.
            if self.held.entries.len() >= limit.saturating_mul(2) {
                self.cut(limit);
            }
            return Ok(());
        }
        self.held.absorb(part.held);
        if self.held.memory_bytes() > self.memory_bytes_max {
            self.make_room()?;
        }
        Ok(())
    }

    /// Throws away what is beyond the limit.
    fn cut(&mut self, limit: usize) {
        self.held.sort();
        self.held.keep_first(limit);
        self.bound = self.held.entries.last().map(|last| self.held.key(last).to_vec());
    }

    #[cold]
    fn make_room(&mut self) -> Result<()> {
        if let Some(limit) = self.limit
            && self.held.entries.len() > limit
        {
            self.cut(limit);
            if self.held.memory_bytes() <= self.memory_bytes_max / 2 {
                return Ok(());
            }
        }
        let Some(spill) = &self.spill else { return Err(self.too_large()) };
        self.held.sort();
        let held = std::mem::take(&mut self.held);
        self.files.push(write_run(&**spill, held.into_source(), self.limit)?);
        if self.files.len() >= FILES_MAX {
            let sources = self.files.drain(..).map(Source::File).collect();
            let merged = write_run(&**spill, Source::Merge(Box::new(Merge::new(sources)?)), self.limit)?;
            self.files.push(merged);
        }
        Ok(())
    }

    fn too_large(&self) -> Error {
        let message = format!(
            "{} exceeded memory limit of {} bytes, but did not opt in to external sorting. Aborting operation. Pass \
             allowDiskUse:true to opt in.",
            self.name, self.memory_bytes_max
        );
        Error::new(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message)
    }

    /// Everything that was pushed, in order.
    pub fn finish(mut self) -> Result<Sorted> {
        self.held.sort();
        if let Some(limit) = self.limit {
            self.held.entries.truncate(limit);
        }
        let held = self.held.into_source();
        let source = if self.files.is_empty() {
            held
        } else {
            // Files hold what came earlier, so they go first where keys are equal.
            let sources = self.files.into_iter().map(Source::File).chain([held]).collect();
            Source::Merge(Box::new(Merge::new(sources)?))
        };
        Ok(Sorted { source, left: self.limit.unwrap_or(usize::MAX) })
    }
}

/// What a part of the input has, in order: made by any thread, for [`Sorter::absorb`].
#[derive(Default)]
pub struct SortedPart {
    held: Held,
}

impl SortedPart {
    pub fn push(&mut self, key: &[u8], doc: RawDoc<'_>) {
        self.held.push(key, doc, PART_CHUNK_BYTES);
    }

    pub fn bytes(&self) -> usize {
        self.held.memory_bytes()
    }

    /// Sorts it; of more than `limit` the rest is thrown away.
    pub fn finish(&mut self, limit: Option<u64>) {
        self.held.sort();
        if let Some(limit) = limit {
            self.held.entries.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
    }
}

/// The documents in order.
pub struct Sorted {
    source: Source,
    left: usize,
}

impl Sorted {
    pub fn advance(&mut self) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        self.source.advance()
    }

    pub fn doc(&self) -> RawDoc<'_> {
        self.source.doc()
    }

    pub fn key(&self) -> &[u8] {
        self.source.key()
    }
}

/// Documents in memory.
#[derive(Default)]
pub(super) struct Held {
    entries: Vec<Entry>,
    chunks: Vec<Vec<u8>>,
    chunk_bytes: usize,
    /// Entries came sorted part by part.
    in_runs: bool,
}

#[derive(Clone, Copy)]
struct Entry {
    /// The start of the key, so that most comparisons look no further.
    prefix: u128,
    chunk: u32,
    at: u32,
    key_len: u32,
    doc_len: u32,
}

impl Held {
    fn push(&mut self, key: &[u8], doc: RawDoc<'_>, chunk_bytes: usize) {
        let doc = doc.as_bytes();
        let size = key.len() + doc.len();
        let fits = self.chunks.last().is_some_and(|chunk| chunk.capacity() - chunk.len() >= size);
        if !fits {
            let capacity = size.max(chunk_bytes);
            self.chunk_bytes += capacity;
            self.chunks.push(Vec::with_capacity(capacity));
        }
        let chunk_at = self.chunks.len().saturating_sub(1);
        if let Some(chunk) = self.chunks.last_mut() {
            let at = chunk.len();
            chunk.extend_from_slice(key);
            chunk.extend_from_slice(doc);
            self.entries.push(Entry {
                prefix: prefix(key),
                chunk: chunk_at as u32,
                at: at as u32,
                key_len: key.len() as u32,
                doc_len: doc.len() as u32,
            });
        }
    }

    fn memory_bytes(&self) -> usize {
        // A chunk that has just been begun counts by what is in it: small sorts are small.
        let unused = self.chunks.last().map_or(0, |chunk| chunk.capacity() - chunk.len());
        self.chunk_bytes - unused + self.entries.len() * size_of::<Entry>()
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        let at = entry.at as usize;
        &self.chunks[entry.chunk as usize][at..at + entry.key_len as usize]
    }

    fn doc(&self, entry: &Entry) -> RawDoc<'_> {
        let at = entry.at as usize + entry.key_len as usize;
        RawDoc::trusted(&self.chunks[entry.chunk as usize][at..at + entry.doc_len as usize])
    }

    fn sort(&mut self) {
        let chunks = &self.chunks;
        let key = |e: &Entry| {
            let at = e.at as usize;
            &chunks[e.chunk as usize][at..at + e.key_len as usize]
        };
        let order = |a: &Entry, b: &Entry| {
            let by_key = a.prefix.cmp(&b.prefix).then_with(|| key(a).cmp(key(b)));
            // Positions grow with time, also across `keep_first`.
            by_key.then_with(|| (a.chunk, a.at).cmp(&(b.chunk, b.at)))
        };
        // One kind of sort makes use of what is in order already, the other is faster otherwise.
        match self.in_runs {
            true => self.entries.sort_by(order),
            false => self.entries.sort_unstable_by(order),
        }
    }

    /// Takes over what another holds, behind all that is here.
    fn absorb(&mut self, mut other: Held) {
        let shift = self.chunks.len() as u32;
        if let Some(last) = other.chunks.last_mut() {
            other.chunk_bytes -= last.capacity();
            last.shrink_to_fit();
            other.chunk_bytes += last.capacity();
        }
        self.chunks.append(&mut other.chunks);
        self.chunk_bytes += other.chunk_bytes;
        self.entries.extend(other.entries.iter().map(|entry| Entry { chunk: entry.chunk + shift, ..*entry }));
        self.in_runs = true;
    }

    /// Copies the first ones together and frees the rest. The entries are sorted.
    fn keep_first(&mut self, count: usize) {
        let mut kept = Held::default();
        for entry in self.entries.iter().take(count) {
            kept.push(self.key(entry), self.doc(entry), CHUNK_BYTES);
        }
        *self = kept;
    }

    fn into_source(self) -> Source {
        Source::Held(HeldSource { held: self, next: 0 })
    }
}

/// Reads sorted documents in memory.
pub(super) struct HeldSource {
    held: Held,
    next: usize,
}

impl HeldSource {
    pub fn advance(&mut self) -> bool {
        if self.next < self.held.entries.len() {
            self.next += 1;
            return true;
        }
        false
    }

    fn entry(&self) -> Option<&Entry> {
        self.held.entries.get(self.next.wrapping_sub(1))
    }

    pub fn key(&self) -> &[u8] {
        self.entry().map_or(&[], |entry| self.held.key(entry))
    }

    pub fn doc(&self) -> RawDoc<'_> {
        self.entry().map_or(RawDoc::EMPTY, |entry| self.held.doc(entry))
    }
}

/// The first bytes as a number that orders alike; a shorter key is filled up with zeros.
fn prefix(key: &[u8]) -> u128 {
    if let Some(bytes) = key.first_chunk() {
        return u128::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 16];
    bytes[..key.len()].copy_from_slice(key);
    u128::from_be_bytes(bytes)
}

/// The order of two sources by where they stand.
pub(super) fn by_key(a: &Source, b: &Source) -> Ordering {
    a.key().cmp(b.key())
}
