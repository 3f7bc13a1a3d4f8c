//! The cursor a find gives: access, filter, sort, skip, limit and projection in one stream.

use std::sync::Arc;

use espalier_query::sort::Sort;
use espalier_query::stage::Run;
use espalier_query::stage::sorter::{Sorted, Sorter};
use espalier_query::{Filter, Stream, Summary};
use espalier_store::{Cursor, Find};
use espalier_value::key::Decoder;
use espalier_value::{DocBuf, RawDoc, Result};

use super::merge::Merge;
use super::records::Records;
use crate::catalog::{Collection, Index};
use crate::layout::{RecordId, record_at_end};
use crate::plan::{Access, Plan};
use crate::view::View;

/// Documents before skip, limit and projection.
enum Input {
    Records(Records),
    Merge(Box<Merge>),
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
    to_skip: u64,
    remaining: Option<u64>,
    /// Present if documents are rebuilt from this index's keys.
    covered: Option<Arc<Index>>,
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
}

/// Documents between two looks at the interrupt flag.
const CHECK_EVERY: u32 = 64;

pub fn open(view: &View, collection: &Collection, plan: &Plan, find: &Find, run: Run) -> Result<FindCursor> {
    let input = match (&plan.access, &find.sort) {
        (Access::Merge(scans), Some(sort)) => {
            Input::Merge(Box::new(Merge::open(view, collection, scans, sort.clone())?))
        }
        (access, _) => Input::Records(Records::open(view, collection, access, plan.covered)?),
    };
    let covered = match (&plan.access, plan.covered) {
        (Access::Index(scan), true) => Some(scan.index.clone()),
        _ => None,
    };
    let reads = Arc::new(Reads(plan.access.scans().iter().map(|scan| scan.index.clone()).collect()));
    find.context.work.planned(&reads);
    Ok(FindCursor {
        input,
        filter: plan.residual.then(|| find.filter.clone()),
        sort: if plan.sorted { None } else { find.sort.clone() },
        run,
        to_skip: find.skip,
        remaining: find.limit,
        covered,
        position: None,
        out: DocBuf::new(),
        rewritten: false,
        plan: reads,
        told: (0, 0),
        since_check: 0,
        returned: 0,
        find: find.clone(),
    })
}

impl FindCursor {
    /// Moves to the next document that matches; position, covered document and record are then known.
    fn next_match(&mut self) -> Result<bool> {
        loop {
            self.since_check += 1;
            if self.since_check >= CHECK_EVERY {
                self.since_check = 0;
                self.find.context.interrupt.check()?;
            }
            let found = match &mut self.input {
                Input::Records(records) => records.next()?,
                Input::Merge(merge) => merge.next()?,
                Input::Sorted { docs, .. } => return docs.advance(),
            };
            if !found {
                return Ok(false);
            }
            if self.covered.is_some() {
                self.rebuild();
                return Ok(true);
            }
            match &self.filter {
                Some(filter) if !filter.matches(self.stored(), &self.find.context)? => {}
                _ => return Ok(true),
            }
        }
    }

    /// Reads and sorts all matches.
    fn sort(&mut self, sort: &Sort) -> Result<()> {
        self.find.context.work.sorts();
        let keep = self.remaining.map(|limit| limit.saturating_add(self.to_skip));
        let mut sorter = Sorter::new("Sort", keep, &self.run);
        let mut key = Vec::new();
        while self.next_match()? {
            key.clear();
            let doc = self.matched();
            if !sort.key_below(doc, sorter.bound(), &mut key)? {
                continue;
            }
            // Equal keys keep their order anyway; the record id goes along to be had back.
            key.extend_from_slice(&self.record().to_be_bytes());
            sorter.push(&key, doc)?;
        }
        let examined = self.examined();
        self.input = Input::Sorted { docs: Box::new(sorter.finish()?), examined };
        self.covered = None;
        Ok(())
    }

    /// The document as it is stored.
    fn stored(&self) -> RawDoc<'_> {
        match &self.input {
            Input::Records(records) => records.doc(),
            Input::Merge(merge) => merge.doc(),
            Input::Sorted { docs, .. } => docs.doc(),
        }
    }

    /// The document that matched: stored, or rebuilt from the index.
    fn matched(&self) -> RawDoc<'_> {
        if self.covered.is_some() { self.out.as_raw() } else { self.stored() }
    }

    pub fn record(&self) -> RecordId {
        match &self.input {
            Input::Records(records) => records.record(),
            Input::Merge(merge) => merge.record(),
            Input::Sorted { docs, .. } => record_at_end(docs.key()),
        }
    }

    fn examined(&self) -> (u64, u64) {
        match &self.input {
            Input::Records(records) => records.examined(),
            Input::Merge(merge) => merge.examined(),
            Input::Sorted { examined, .. } => *examined,
        }
    }

    /// Puts the fields of the index entry back into a document.
    fn rebuild(&mut self) {
        let (Some(index), Input::Records(records)) = (&self.covered, &self.input) else { return };
        let Some((fields, types)) = records.fields() else { return };
        self.out.clear();
        let mut decoder = Decoder::new(fields, types);
        for part in &index.spec.parts {
            let descending = part.kind == espalier_store::IndexKind::Descending;
            let Some(value) = decoder.next(descending) else { break };
            insert_path(&mut self.out, part.path.parts(), &value);
        }
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
}

impl FindCursor {
    fn step(&mut self) -> Result<bool> {
        if self.remaining == Some(0) {
            return Ok(false);
        }
        if let Some(sort) = self.sort.take() {
            self.sort(&sort)?;
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
