//! One stored bucket: reading its items, and writing it with others.

use espalier_query::Context;
use espalier_store::{Namespace, Transaction};
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawArray, RawDoc, Result, ValueRef};

use super::stats::number;
use super::{Bucket, PART, STATS, WHOLE};
use crate::bson::{id_of, value_at, whole, with_value};
use crate::stored::{insert, remove, replace};

/// What a document may measure.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// A reading on its way into a bucket.
#[derive(Clone, Copy)]
pub enum Entry<'a> {
    /// An item of the bucket, and whether it is stored whole.
    Kept(RawDoc<'a>, bool),
    /// A reading that is new to it.
    New(RawDoc<'a>),
}

impl<'a> Entry<'a> {
    pub fn doc(self) -> RawDoc<'a> {
        match self {
            Entry::Kept(doc, _) | Entry::New(doc) => doc,
        }
    }

    /// What it takes of a bucket's room; a new one may turn out a little smaller.
    pub fn bytes(self) -> usize {
        self.doc().as_bytes().len()
    }
}

impl Bucket {
    /// The items of a stored bucket.
    pub(super) fn entries<'a>(&self, stored: RawDoc<'a>) -> Vec<Entry<'a>> {
        let marks = marks(stored);
        let mut marks = marks.iter().copied().peekable();
        let items = self.items_of(stored).iter().enumerate();
        items
            .filter_map(|(at, item)| {
                let whole = marks.next_if_eq(&at).is_some();
                item.as_doc().map(|item| Entry::Kept(item, whole))
            })
            .collect()
    }

    pub(super) fn items_of<'a>(&self, stored: RawDoc<'a>) -> RawArray<'a> {
        match stored.get(&self.items) {
            Some(ValueRef::Array(items)) => items,
            _ => RawArray::EMPTY,
        }
    }

    /// The reading of one of its entries.
    pub(super) fn reading(&self, stored: RawDoc<'_>, entry: Entry<'_>) -> DocBuf {
        match entry {
            Entry::New(doc) => DocBuf::from_raw(doc),
            Entry::Kept(item, whole) => {
                let mut out = DocBuf::with_capacity(item.as_bytes().len() + 64);
                self.put_together(stored, item, whole, &mut out);
                out
            }
        }
    }

    /// The bucket that a new reading opens, without readings.
    fn opened(&self, reading: RawDoc<'_>, part: i64, context: &Context) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append("_id", ValueRef::ObjectId(new_id(context)));
        for path in &self.by {
            let value = value_at(reading, path.parts()).unwrap_or(ValueRef::Null);
            doc = with_value(doc.as_raw(), path.parts(), value);
        }
        if let Some(time) = &self.time {
            let (start, end) = time.every.window(self.at_ms(reading));
            doc.append(&time.start, ValueRef::DateTime(start)).append(&time.end, ValueRef::DateTime(end));
        }
        if part > 0 {
            doc.append(PART, number(part as usize));
        }
        doc
    }

    /// A bucket with these readings; `head` is a bucket, or the beginning of one.
    pub(super) fn filled(&self, head: RawDoc<'_>, entries: &[Entry<'_>]) -> Result<DocBuf> {
        let mut entries = entries.to_vec();
        if self.time.is_some() {
            // Of the same instant, what came first stays first.
            entries.sort_by_key(|entry| self.at_ms(entry.doc()));
        }
        let bytes: usize = entries.iter().map(|entry| entry.bytes() + 8).sum();
        let mut doc = DocBuf::with_capacity(bytes + 512);
        let made = [&*self.items, WHOLE, STATS];
        for elem in head.iter().filter(|elem| !made.contains(&elem.name())) {
            doc.append_elem(elem);
        }
        let (mut items, mut whole, mut scratch) = (ArrayBuf::new(), ArrayBuf::new(), DocBuf::new());
        for (at, entry) in entries.iter().enumerate() {
            let is_whole = match entry {
                Entry::Kept(item, is_whole) => {
                    items.push(*item);
                    *is_whole
                }
                Entry::New(reading) => {
                    let (item, is_whole) = self.take_apart(head, *reading, &mut scratch);
                    items.push(&item);
                    is_whole
                }
            };
            if is_whole {
                whole.push(number(at));
            }
        }
        doc.append(&self.items, &items);
        if !whole.is_empty() {
            doc.append(WHOLE, &whole);
        }
        let stats = self.stats.of(entries.iter().map(|entry| entry.doc()))?;
        doc.append(STATS, &stats);
        if doc.len_bytes() > DOCUMENT_BYTES_MAX {
            return Err(Error::new(
                Code::BSONObjectTooLarge,
                format!(
                    "a reading of {} bytes does not fit into a bucket, which has at most {DOCUMENT_BYTES_MAX}",
                    entries.iter().map(|entry| entry.bytes()).max().unwrap_or(0)
                ),
            ));
        }
        Ok(doc)
    }

    /// Stores a new bucket for these readings.
    pub(super) fn open(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        part: i64,
        entries: &[Entry<'_>],
        context: &Context,
    ) -> Result<()> {
        let Some(first) = entries.first() else { return Ok(()) };
        let head = self.opened(first.doc(), part, context);
        let doc = self.filled(head.as_raw(), entries)?;
        insert(tx, &self.buckets(ns), &[doc.as_raw()])
    }

    /// Stores a bucket with other readings; without any, it goes.
    pub(super) fn rewrite(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        stored: RawDoc<'_>,
        entries: &[Entry<'_>],
    ) -> Result<()> {
        if entries.is_empty() {
            return remove(tx, &self.buckets(ns), id_of(stored));
        }
        let doc = self.filled(stored, entries)?;
        replace(tx, &self.buckets(ns), doc)
    }
}

/// The number of a bucket among those of its window.
pub fn part_of(stored: RawDoc<'_>) -> i64 {
    whole(stored.get(PART)).unwrap_or(0)
}

/// Positions of the readings that are stored whole, ascending.
pub fn marks(stored: RawDoc<'_>) -> Vec<usize> {
    match stored.get(WHOLE) {
        Some(ValueRef::Array(list)) => {
            list.iter().filter_map(|at| whole(Some(at)).and_then(|at| usize::try_from(at).ok())).collect()
        }
        _ => Vec::new(),
    }
}

/// An ObjectId from the command's clock and randomness.
fn new_id(context: &Context) -> [u8; 12] {
    let bits = || (context.random() * (1u64 << 53) as f64) as u64;
    let random = bits() ^ (bits() << 11);
    let mut id = [0; 12];
    id[..4].copy_from_slice(&((context.now_ms / 1000) as u32).to_be_bytes());
    id[4..].copy_from_slice(&random.to_be_bytes());
    id
}
