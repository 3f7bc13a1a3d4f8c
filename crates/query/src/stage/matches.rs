//! The documents of a collection that have one of some values at a path, asked for again and again: the inner side of
//! `$lookup` and `$graphLookup`. An index answers if there is one, once for the same values. Otherwise the first question is answered by
//! a scan and the second by a table of all documents by value, built once; if that would not fit into memory, every
//! question is a scan.

use std::collections::HashMap;
use std::sync::Arc;

use espalier_value::path::Part;
use espalier_value::{Collator, DocBuf, Path, RawArray, RawDoc, Result, ValueRef, document_len};
use smallvec::SmallVec;

use super::answers::Answers;
use super::group::hash::Seeded;
use super::sub_pipeline::Prepared;
use super::{Leading, Run, leading};
use crate::context::Context;
use crate::filter::walk::{self, Visit};
use crate::filter::{Filter, Reach};
use crate::stream::Stream;

pub(super) struct Matches {
    from: Prepared,
    path: Path,
    how: How,
}

enum How {
    Index(Answers),
    /// Nothing has been asked yet.
    New,
    /// One question has been answered by a scan.
    Asked,
    Table(Arc<Table>),
    /// A table would be too large.
    Scan,
}

impl Matches {
    pub fn new(from: Prepared, path: Path, run: &Run) -> Result<Matches> {
        let plain = from.pipeline.rest().is_empty() && from.pipeline.leading().is_filter();
        let how = match &from.collection {
            Some(collection)
                if plain && run.collections()?.has_index(collection, path.as_str(), run.context.collator())? =>
            {
                How::Index(Answers::new(run.limits.stage_memory_bytes_max))
            }
            _ => How::New,
        };
        Ok(Matches { from, path, how })
    }

    /// The documents that a filter for equality with any of the values lets through.
    pub fn open(&mut self, values: &[ValueRef<'_>], run: &Run) -> Result<Box<dyn Stream>> {
        if matches!(self.how, How::Asked) {
            self.how = match Table::build(&self.from, &self.path, run)? {
                Some(table) => How::Table(Arc::new(table)),
                None => How::Scan,
            };
        }
        match &mut self.how {
            How::Table(table) => Ok(Box::new(table.clone().find(values, run.context.collator()))),
            How::Index(answers) => {
                if let Some(known) = answers.find(values, run.context.collator()) {
                    return Ok(Box::new(known));
                }
                answers.keep(filtered(&self.from, &self.path, values, run)?)
            }
            How::New => {
                self.how = How::Asked;
                filtered(&self.from, &self.path, values, run)
            }
            How::Asked | How::Scan => filtered(&self.from, &self.path, values, run),
        }
    }
}

fn filtered(from: &Prepared, path: &Path, values: &[ValueRef<'_>], run: &Run) -> Result<Box<dyn Stream>> {
    let filter = Arc::new(Filter::parse(equal_to(path.as_str(), values).as_raw(), &from.scope)?);
    let pipeline = &from.pipeline;
    match &from.collection {
        Some(collection) if pipeline.rest().is_empty() && pipeline.leading().is_filter() => {
            let own = &pipeline.leading().filter;
            let filter = if own.is_empty() { filter } else { leading::merge(&[&filter, own], &from.scope)? };
            run.collections()?.find(collection, &Leading::matching(filter), run)
        }
        _ => Ok(Box::new(Filtered { filter, input: from.open(run)?, context: run.context.clone() })),
    }
}

/// `{path: {$in: values}}`, or what is the same where a value would be read as a pattern.
fn equal_to(path: &str, values: &[ValueRef<'_>]) -> DocBuf {
    let mut filter = DocBuf::new();
    match values {
        [value] => {
            filter.append_doc(path, |condition| {
                condition.append("$eq", defined(*value));
            });
        }
        values if values.iter().any(|value| matches!(value, ValueRef::Regex(..))) => {
            filter.append_array("$or", |alternatives| {
                for value in values {
                    alternatives.push_doc(|one| {
                        one.append_doc(path, |condition| {
                            condition.append("$eq", defined(*value));
                        });
                    });
                }
            });
        }
        values => {
            filter.append_doc(path, |condition| {
                condition.append_array("$in", |list| {
                    values.iter().for_each(|value| {
                        list.push(defined(*value));
                    });
                });
            });
        }
    }
    filter
}

/// Undefined equals null, and cannot be written in a filter.
fn defined(value: ValueRef<'_>) -> ValueRef<'_> {
    if matches!(value, ValueRef::Undefined) { ValueRef::Null } else { value }
}

struct Filtered {
    filter: Arc<Filter>,
    input: Box<dyn Stream>,
    context: Arc<Context>,
}

impl Stream for Filtered {
    fn advance(&mut self) -> Result<bool> {
        while self.input.advance()? {
            self.context.interrupt.check()?;
            if self.filter.matches(self.input.doc(), &self.context)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.input.doc()
    }
}

/// Documents by the values that a filter for equality would find them by.
struct Table {
    /// All documents, one after the other.
    bytes: Vec<u8>,
    starts: Vec<usize>,
    /// Places in `starts`, ascending.
    by_key: HashMap<Box<[u8]>, SmallVec<[u32; 2]>, Seeded>,
}

/// What an entry of the table takes beside its key.
const ENTRY_BYTES: usize = 64;

impl Table {
    /// `None` if it would not fit.
    fn build(from: &Prepared, path: &Path, run: &Run) -> Result<Option<Table>> {
        let mut table = Table { bytes: Vec::new(), starts: Vec::new(), by_key: HashMap::with_hasher(Seeded::new()) };
        let mut keys = Keys { found: Vec::new(), collator: run.context.collator() };
        let (mut stream, mut used) = (from.open(run)?, 0);
        while stream.advance()? {
            run.context.interrupt.check()?;
            let doc = stream.doc();
            keys.found.clear();
            walk::document(doc, path.parts(), &mut keys, &mut None)?;
            let place = table.starts.len() as u32;
            for key in keys.found.drain(..) {
                used += key.len() + ENTRY_BYTES;
                let places = table.by_key.entry(key.into()).or_default();
                // An array may hold a value twice.
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
            table.starts.push(table.bytes.len());
            table.bytes.extend_from_slice(doc.as_bytes());
            if used + table.bytes.len() > run.limits.stage_memory_bytes_max || table.starts.len() >= u32::MAX as usize {
                return Ok(None);
            }
        }
        Ok(Some(table))
    }

    fn find(self: Arc<Table>, values: &[ValueRef<'_>], collator: Collator<'_>) -> Hits {
        let mut places: SmallVec<[u32; 4]> = SmallVec::new();
        for value in values {
            if let Some(found) = self.by_key.get(&*collator.key(defined(*value))) {
                places.extend_from_slice(found);
            }
        }
        if values.len() > 1 {
            places.sort_unstable();
            places.dedup();
        }
        Hits { table: self, places, next: 0 }
    }
}

/// Takes every candidate for equality as a key.
struct Keys<'c> {
    found: Vec<Vec<u8>>,
    collator: Collator<'c>,
}

impl Visit for Keys<'_> {
    fn visit(&mut self, value: Option<ValueRef<'_>>, _position: &mut Option<usize>) -> Result<bool> {
        self.found.push(self.collator.key(defined(value.unwrap_or(ValueRef::Null))));
        Ok(false)
    }

    fn reach(&self) -> Reach {
        Reach::Elements
    }
}

struct Hits {
    table: Arc<Table>,
    places: SmallVec<[u32; 4]>,
    next: usize,
}

impl Stream for Hits {
    fn advance(&mut self) -> Result<bool> {
        let more = self.next < self.places.len();
        self.next += usize::from(more);
        Ok(more)
    }

    fn doc(&self) -> RawDoc<'_> {
        let place = self.next.checked_sub(1).and_then(|at| self.places.get(at));
        let start = place.and_then(|place| self.table.starts.get(*place as usize));
        let Some(bytes) = start.and_then(|start| self.table.bytes.get(*start..)) else { return RawDoc::EMPTY };
        document_len(bytes).map_or(RawDoc::EMPTY, |len| RawDoc::trusted(&bytes[..len]))
    }
}

/// The values at a path that a document is joined by: an array gives its elements, an array on the way each of its
/// documents. Nothing at all counts as null.
pub(super) fn join_values<'a>(doc: RawDoc<'a>, path: &Path) -> SmallVec<[ValueRef<'a>; 4]> {
    let mut values = SmallVec::new();
    collect(ValueRef::Document(doc), path.parts(), &mut values);
    if values.is_empty() {
        values.push(ValueRef::Null);
    }
    values
}

/// As [`join_values`], but nothing is nothing.
pub(super) fn collect<'a>(value: ValueRef<'a>, parts: &[Part], values: &mut SmallVec<[ValueRef<'a>; 4]>) {
    match (value, parts) {
        (ValueRef::Array(array), []) => values.extend(array.iter()),
        (value, []) => values.push(value),
        (ValueRef::Document(doc), [part, rest @ ..]) => {
            if let Some(inner) = doc.get(part.name()) {
                collect(inner, rest, values);
            }
        }
        (ValueRef::Array(array), parts) => through(array, parts, values),
        _ => {}
    }
}

fn through<'a>(array: RawArray<'a>, parts: &[Part], values: &mut SmallVec<[ValueRef<'a>; 4]>) {
    if let Some((part, rest)) = parts.split_first()
        && let Some(inner) = part.index().and_then(|index| array.get(index))
    {
        collect(inner, rest, values);
    }
    for element in array.iter().filter(|element| element.as_doc().is_some()) {
        collect(element, parts, values);
    }
}
