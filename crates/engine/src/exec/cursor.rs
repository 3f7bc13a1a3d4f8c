//! The cursor a find gives: access, filter, sort, skip, limit and projection in one stream.

use std::sync::Arc;

use espalier_query::gather::Gathered;
use espalier_query::sort::Sort;
use espalier_query::stage::Run;
use espalier_query::stage::sort_input::SortInput;
use espalier_query::stage::sorter::{Sorted, Sorter};
use espalier_query::stream::Parts;
use espalier_query::{Filter, Stream, Summary};
use espalier_store::{Cursor, Find};
use espalier_value::key::Decoder;
use espalier_value::{DocBuf, RawDoc, Result};

use super::merge::Merge;
use super::parts::Divider;
use super::records::Records;
use crate::catalog::{Collection, Index};
use crate::layout::{RecordId, record_at_end};
use crate::plan::{Access, Plan};
use crate::view::View;

/// Documents before skip, limit and projection.
enum Input {
    Records(Records),
    Merge(Box<Merge>),
    /// Read in parts, with helpers; what was examined before that.
    Gathered {
        docs: Box<Gathered>,
        examined: (u64, u64),
    },
    /// Sorted here; what was examined for it.
    Sorted {
        docs: Box<Sorted>,
        examined: (u64, u64),
    },
}

/// The indexes that a plan reads: none for a scan of the collection.
#[derive(Debug)]
struct Reads(Vec<Arc<Index>>);

impl Summary for Reads {
    fn summary(&self) -> String {
        crate::plan::summary(&self.0)
    }

    fn is_collection_scan(&self) -> bool {
        self.0.is_empty()
    }
}

pub struct FindCursor {
    input: Input,
    find: Find,
    filter: Option<Arc<Filter>>,
    /// Sort still to be done, before the first document.
    sort: Option<Arc<Sort>>,
    run: Run,
    /// Present if the scan may be divided among several threads.
    divider: Option<Divider>,
    to_skip: u64,
    remaining: Option<u64>,
    /// Present if documents are rebuilt from this index's keys.
    covered: Option<Arc<Index>>,
    /// The document under the cursor is the stored one after all.
    fetched: bool,
    position: Option<usize>,
    /// The document as the client gets it, where that is not the stored one.
    out: DocBuf,
    rewritten: bool,
    /// What the plan reads, for logs.
    plan: Arc<Reads>,
    /// Keys and documents examined that the command has been told of.
    told: (u64, u64),
    since_check: u32,
    pub returned: u64,
    /// Documents that matched, before sort, skip and limit.
    pub matches: u64,
    /// What had to be sorted, as documents.
    pub sorted_bytes: u64,
}

/// Documents between two looks at the interrupt flag.
const CHECK_EVERY: u32 = 64;
/// Documents examined for one reader before others are asked to help: most finds end sooner.
const ALONE_MAX: u64 = 8_192;

pub fn open(view: &View, collection: &Arc<Collection>, plan: &Plan, find: &Find, run: Run) -> Result<FindCursor> {
    let input = match (&plan.access, &find.sort) {
        (Access::Merge(scans), Some(sort)) => {
            Input::Merge(Box::new(Merge::open(view, collection, scans, sort.clone())?))
        }
        (access, _) => Input::Records(Records::open(view, collection, access, plan.covered)?),
    };
    let covered = match (&plan.access, plan.covered) {
        // Who only counts needs no documents at all.
        (Access::Index(scan), true) if !find.is_count() => Some(scan.index.clone()),
        _ => None,
    };
    let divider = match (&plan.access, &find.context.helpers) {
        (Access::Collection { reverse }, Some(helpers)) if helpers.has_room() => {
            Some(Divider::new(view, Arc::clone(collection), *reverse))
        }
        _ => None,
    };
    let reads = Arc::new(Reads(plan.access.scans().iter().map(|scan| scan.index.clone()).collect()));
    find.context.work.planned(&reads);
    Ok(FindCursor {
        input,
        filter: plan.residual.then(|| find.filter.clone()),
        sort: if plan.sorted { None } else { find.sort.clone() },
        run,
        divider,
        to_skip: find.skip,
        remaining: find.limit,
        covered,
        fetched: false,
        position: None,
        out: DocBuf::new(),
        rewritten: false,
        plan: reads,
        told: (0, 0),
        since_check: 0,
        returned: 0,
        matches: 0,
        sorted_bytes: 0,
        find: find.clone(),
    })
}

impl FindCursor {
    /// The same without help, so that all is counted in one place.
    pub fn alone(mut self) -> FindCursor {
        self.divider = None;
        self
    }

    /// Moves to the next document that matches; position, covered document and record are then known.
    fn next_match(&mut self) -> Result<bool> {
        loop {
            self.since_check += 1;
            if self.since_check >= CHECK_EVERY {
                self.since_check = 0;
                self.find.context.interrupt.check()?;
                self.ask_for_help()?;
            }
            let found = match &mut self.input {
                // Those who read the parts have applied the filter.
                Input::Gathered { docs, .. } => return docs.advance(),
                Input::Records(records) => records.next()?,
                Input::Merge(merge) => merge.next()?,
                Input::Sorted { docs, .. } => return docs.advance(),
            };
            if !found {
                return Ok(false);
            }
            if self.covered.is_some() {
                self.rebuild()?;
                self.matches += 1;
                return Ok(true);
            }
            match &self.filter {
                Some(filter) if !filter.matches(self.stored(), &self.find.context)? => {}
                _ => {
                    self.matches += 1;
                    return Ok(true);
                }
            }
        }
    }

    /// Goes on in parts if the filter has much to do and processors are free.
    fn ask_for_help(&mut self) -> Result<()> {
        let (Some(divider), Input::Records(records)) = (&self.divider, &self.input) else { return Ok(()) };
        let Some(helpers) = &self.find.context.helpers else { return Ok(()) };
        let examined = records.examined();
        if self.filter.is_none() || self.remaining.is_some() || examined.1 < ALONE_MAX || !helpers.has_room() {
            return Ok(());
        }
        let parts = divider.parts(Some(records.record()), self.filter.clone(), self.find.context.clone())?;
        let Some(parts) = parts else {
            self.divider = None;
            return Ok(());
        };
        let docs = Gathered::new(Box::new(parts), helpers.clone(), self.needed_fields());
        self.input = Input::Gathered { docs: Box::new(docs), examined };
        Ok(())
    }

    /// The parts of all matches, before anything has been read.
    fn divide(&self) -> Option<Box<dyn Parts>> {
        let helpers = self.find.context.helpers.as_ref()?;
        let divider = self.divider.as_ref().filter(|_| helpers.has_room())?;
        // What does not work out here fails or works out when it is read in one piece.
        let parts = divider.parts(None, self.filter.clone(), self.find.context.clone()).ok()??;
        Some(Box::new(parts))
    }

    /// The top-level fields that are looked at; `None` if all are.
    fn needed_fields(&self) -> Option<Vec<Box<str>>> {
        let is_whole = self.find.projection.is_some() || self.find.return_key || self.find.show_record_id;
        let needs = self.find.needs.as_ref().filter(|_| !is_whole)?;
        Some(needs.iter().map(|path| path.split('.').next().unwrap_or_default().into()).collect())
    }

    /// Reads and sorts all matches.
    fn sort(&mut self, sort: Arc<Sort>) -> Result<()> {
        self.find.context.work.sorts();
        let limit = self.remaining.map(|limit| limit.saturating_add(self.to_skip));
        let run = self.run.clone();
        let mut sorter = Sorter::new("Sort", limit, &run);
        let key = move |input: &dyn Stream, bound: Option<&[u8]>, key: &mut Vec<u8>| {
            if !sort.key_below(input.doc(), bound, key)? {
                return Ok(false);
            }
            // Equal keys keep their order anyway; the record id goes along to be had back.
            key.extend_from_slice(&input.record().to_be_bytes());
            Ok(true)
        };
        let input = SortInput { key, limit, fields: self.needed_fields() };
        input.take_in(&mut Matches(self), &mut sorter, &run)?;
        let examined = self.examined();
        self.divider = None;
        self.input = Input::Sorted { docs: Box::new(sorter.finish()?), examined };
        self.covered = None;
        Ok(())
    }

    /// The document as it is stored.
    fn stored(&self) -> RawDoc<'_> {
        match &self.input {
            Input::Records(records) => records.doc(),
            Input::Merge(merge) => merge.doc(),
            Input::Gathered { docs, .. } => docs.doc(),
            Input::Sorted { docs, .. } => docs.doc(),
        }
    }

    /// The document that matched: stored, or rebuilt from the index.
    fn matched(&self) -> RawDoc<'_> {
        if self.covered.is_some() && !self.fetched { self.out.as_raw() } else { self.stored() }
    }

    pub fn record(&self) -> RecordId {
        match &self.input {
            Input::Records(records) => records.record(),
            Input::Merge(merge) => merge.record(),
            Input::Gathered { docs, .. } => docs.record(),
            Input::Sorted { docs, .. } => record_at_end(docs.key()),
        }
    }

    fn examined(&self) -> (u64, u64) {
        let (keys, docs) = match &self.input {
            Input::Records(records) => records.examined(),
            Input::Merge(merge) => merge.examined(),
            Input::Gathered { examined, .. } | Input::Sorted { examined, .. } => *examined,
        };
        (keys, docs + self.divider.as_ref().map_or(0, Divider::examined))
    }

    /// Puts the fields of the index entry back into a document.
    fn rebuild(&mut self) -> Result<()> {
        let (Some(index), Input::Records(records)) = (&self.covered, &mut self.input) else { return Ok(()) };
        let Some((fields, types)) = records.fields() else { return Ok(()) };
        self.out.clear();
        self.fetched = false;
        let mut decoder = Decoder::new(fields, types);
        for part in &index.spec.parts {
            let descending = part.kind == espalier_store::IndexKind::Descending;
            let Some(value) = decoder.next(descending) else { break };
            // Of `a.b` that is missing the key does not tell whether there is an `a`, which a projection shows.
            if value.is_missing() && !part.path.is_single() && self.find.projection.is_some() {
                self.fetched = true;
                return records.fetch();
            }
            insert_path(&mut self.out, part.path.parts(), &value);
        }
        Ok(())
    }

    fn project(&mut self) -> Result<()> {
        self.rewritten = self.covered.is_some();
        if self.find.return_key {
            return self.return_key();
        }
        if let Some(projection) = self.find.projection.clone() {
            let mut out = DocBuf::new();
            if projection.needs_position() {
                let found = self.find.filter.matches_at(self.matched(), &self.find.context)?;
                self.position = found.and_then(|m| m.position);
            }
            projection.apply(self.matched(), self.position, &self.find.context, &mut out)?;
            self.out = out;
            self.rewritten = true;
        }
        if self.find.show_record_id {
            if !self.rewritten {
                self.out = DocBuf::from_raw(self.stored());
                self.rewritten = true;
            }
            let record = self.record() as i64;
            self.out.append("$recordId", record);
        }
        Ok(())
    }

    /// `returnKey`: the fields of the index entry, or nothing without an index.
    fn return_key(&mut self) -> Result<()> {
        let mut out = DocBuf::new();
        if let (Input::Records(records @ Records::Index(_)), Some(index)) = (&self.input, self.index())
            && let Some((fields, types)) = records.fields()
        {
            let mut decoder = Decoder::new(fields, types);
            for part in &index.spec.parts {
                let Some(value) = decoder.next(part.kind == espalier_store::IndexKind::Descending) else { break };
                out.append(part.path.as_str(), value.or_null());
            }
        }
        self.out = out;
        self.rewritten = true;
        Ok(())
    }

    fn index(&self) -> Option<Arc<Index>> {
        match &self.input {
            Input::Records(Records::Index(records)) => records.index(),
            _ => None,
        }
    }
}

impl Stream for FindCursor {
    fn advance(&mut self) -> Result<bool> {
        let found = self.step();
        self.tell();
        found
    }

    #[inline]
    fn doc(&self) -> RawDoc<'_> {
        if self.rewritten { self.out.as_raw() } else { self.stored() }
    }

    fn record(&self) -> u64 {
        FindCursor::record(self)
    }

    fn parts(&mut self) -> Option<Box<dyn Parts>> {
        let find = &self.find;
        let is_plain = self.sort.is_none()
            && self.to_skip == 0
            && self.remaining.is_none()
            && self.covered.is_none()
            && find.projection.is_none()
            && !find.return_key
            && !find.show_record_id;
        if is_plain { self.divide() } else { None }
    }
}

/// All matches, before sort, skip, limit and projection.
struct Matches<'c>(&'c mut FindCursor);

impl Stream for Matches<'_> {
    fn advance(&mut self) -> Result<bool> {
        let found = self.0.next_match()?;
        if found {
            self.0.sorted_bytes += self.0.matched().as_bytes().len() as u64;
        }
        Ok(found)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.0.matched()
    }

    fn record(&self) -> u64 {
        self.0.record()
    }

    fn parts(&mut self) -> Option<Box<dyn Parts>> {
        self.0.divide()
    }
}

impl Drop for FindCursor {
    fn drop(&mut self) {
        // What helpers examined after the last document that was asked for.
        self.tell();
    }
}

impl FindCursor {
    fn step(&mut self) -> Result<bool> {
        if self.remaining == Some(0) {
            return Ok(false);
        }
        if let Some(sort) = self.sort.take() {
            self.sort(sort)?;
        }
        while self.next_match()? {
            if self.to_skip > 0 {
                self.to_skip -= 1;
                continue;
            }
            if let Some(remaining) = &mut self.remaining {
                *remaining -= 1;
            }
            self.project()?;
            self.returned += 1;
            return Ok(true);
        }
        self.remaining = Some(0);
        Ok(false)
    }

    /// Tells the command what was examined for it since the last time.
    fn tell(&mut self) {
        let now = self.examined();
        let (keys, docs) = (now.0.saturating_sub(self.told.0), now.1.saturating_sub(self.told.1));
        self.find.context.work.examined(keys, docs);
        self.told = now;
    }
}

impl Cursor for FindCursor {
    fn keys_examined(&self) -> u64 {
        self.examined().0
    }

    fn docs_examined(&self) -> u64 {
        self.examined().1
    }

    fn plan_summary(&self) -> String {
        self.plan.summary()
    }
}

/// Sets a dotted path in a document that is being put together from index fields.
fn insert_path(out: &mut DocBuf, parts: &[espalier_value::path::Part], value: &espalier_value::Value<'_>) {
    match parts {
        [] => {}
        [last] => {
            out.append_value(last.name(), value);
        }
        [first, rest @ ..] => {
            // Rare: a dotted path. Rebuild the document with the new field inside.
            let mut inner = out.as_raw().get_doc(first.name()).map_or_else(DocBuf::new, DocBuf::from_raw);
            insert_path(&mut inner, rest, value);
            let mut rebuilt = DocBuf::new();
            let mut placed = false;
            for elem in out.as_raw() {
                if elem.name() == first.name() {
                    rebuilt.append(first.name(), &inner);
                    placed = true;
                } else {
                    rebuilt.append_elem(elem);
                }
            }
            if !placed {
                rebuilt.append(first.name(), &inner);
            }
            *out = rebuilt;
        }
    }
}
