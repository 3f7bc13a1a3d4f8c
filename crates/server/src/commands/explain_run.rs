//! Runs a pipeline for `explain` and keeps count: what each stage gave and how long it took, and what it read of other
//! collections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use espalier_query::Stream;
use espalier_query::stage::{Collections, Leading, Pipeline, Run};
use espalier_query::stream::Buffered;
use espalier_store::{Cursor, Namespace};
use espalier_value::{ArrayBuf, Collator, DocBuf};

use super::prelude::*;
use crate::collections::AtSnapshot;
use crate::pipeline::{self, How};

/// What a stage did.
#[derive(Debug, Default)]
pub(super) struct Figures {
    returned: AtomicU64,
    nanos: AtomicU64,
    /// What it read of other collections.
    read: Mutex<Read>,
}

#[derive(Debug, Default)]
struct Read {
    docs: u64,
    keys: u64,
    scans: u64,
    indexes: Vec<String>,
}

impl Figures {
    /// Adds them to a stage of an explanation.
    pub fn append_to(&self, name: &str, out: &mut DocBuf) {
        if name == "$lookup" {
            let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            let strategy = match (read.indexes.is_empty(), read.scans) {
                (false, 0) => "IndexedLoopJoin",
                // Once for the first document, and once to learn where the rest of it is.
                (_, 0..=2) => "HashJoin",
                _ => "NestedLoopJoin",
            };
            out.append("strategy", strategy)
                .append("totalDocsExamined", read.docs as i64)
                .append("totalKeysExamined", read.keys as i64)
                .append("collectionScans", read.scans as i64);
            out.append_array("indexesUsed", |names| {
                read.indexes.iter().for_each(|name| {
                    names.push(name.as_str());
                });
            });
        }
        let millis = self.nanos.load(Ordering::Relaxed) / 1_000_000;
        out.append("nReturned", self.returned.load(Ordering::Relaxed) as i64)
            .append("executionTimeMillisEstimate", millis as i64);
    }
}

/// Runs what the store leaves over of a pipeline on a collection, or all of one that makes its documents. The first
/// figures are those of the input.
pub(super) fn run(
    pipeline: &Pipeline,
    ns: Option<&Namespace>,
    db: &str,
    how: &How<'_>,
    call: &Call<'_>,
) -> Result<Vec<Arc<Figures>>> {
    let transaction = call.begin(how.context)?;
    let input: Box<dyn Stream> = match ns {
        Some(ns) => transaction.find(ns, &pipeline::find(pipeline, how))?,
        None => Box::new(Buffered::new(Vec::new())),
    };
    let others = Arc::new(AtSnapshot::new(db, transaction));
    let base = pipeline::run_with(how, call);
    let mut all = vec![Arc::new(Figures::default())];
    let mut stream: Box<dyn Stream> = Box::new(Counting { input, figures: all[0].clone() });
    for stage in pipeline.rest() {
        let figures = Arc::new(Figures::default());
        let watched = Watched { others: others.clone(), figures: figures.clone() };
        let run = Run { collections: Some(Arc::new(watched)), ..base.clone() };
        let input = stage.clone().run(stream, &run)?;
        stream = Box::new(Counting { input, figures: figures.clone() });
        all.push(figures);
    }
    while stream.advance()? {}
    if let Some(last) = all.last().filter(|_| pipeline.output().is_some()) {
        // What is written is not returned; here it is not written either.
        last.returned.store(0, Ordering::Relaxed);
    }
    Ok(all)
}

/// Counts what passes.
struct Counting {
    input: Box<dyn Stream>,
    figures: Arc<Figures>,
}

impl Stream for Counting {
    fn advance(&mut self) -> Result<bool> {
        let started = Instant::now();
        let found = self.input.advance();
        self.figures.nanos.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        if let Ok(true) = found {
            self.figures.returned.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    fn doc(&self) -> RawDoc<'_> {
        self.input.doc()
    }

    fn lend_partials(&mut self) -> bool {
        self.input.lend_partials()
    }

    fn partial(&self) -> Option<RawDoc<'_>> {
        self.input.partial()
    }
}

/// Other collections, for one stage.
#[derive(Debug)]
struct Watched {
    others: Arc<AtSnapshot>,
    figures: Arc<Figures>,
}

impl Collections for Watched {
    fn view(&self, name: &str, collator: Collator<'_>) -> Result<Option<(Box<str>, ArrayBuf)>> {
        self.others.view(name, collator)
    }

    fn find(&self, collection: &str, leading: &Leading, run: &Run) -> Result<Box<dyn Stream>> {
        let (cursor, plan) = self.others.find_explained(collection, leading, run)?;
        let mut read = self.figures.read.lock().unwrap_or_else(PoisonError::into_inner);
        let winning = plan.as_raw().get_doc("queryPlanner").and_then(|planner| planner.get_doc("winningPlan"));
        winning.into_iter().for_each(|winning| read.plan(winning));
        drop(read);
        Ok(Box::new(Reading { cursor, figures: self.figures.clone() }))
    }

    fn has_index(&self, collection: &str, path: &str, collator: Collator<'_>) -> Result<bool> {
        self.others.has_index(collection, path, collator)
    }
}

impl Read {
    /// Takes down which indexes a plan uses, or that it uses none.
    fn plan(&mut self, stage: RawDoc<'_>) {
        let index = match stage.get_str("stage") {
            Some("COLLSCAN") => {
                self.scans += 1;
                None
            }
            Some("IDHACK") => Some("_id_"),
            _ => stage.get_str("indexName"),
        };
        if let Some(index) = index
            && !self.indexes.iter().any(|known| known == index)
        {
            self.indexes.push(index.into());
        }
        stage.get_doc("inputStage").into_iter().for_each(|input| self.plan(input));
        let inputs = stage.get("inputStages").and_then(ValueRef::as_array);
        inputs
            .into_iter()
            .flat_map(|inputs| inputs.iter().filter_map(ValueRef::as_doc))
            .for_each(|input| self.plan(input));
    }
}

/// Counts what a cursor on another collection examines, once it is closed.
struct Reading {
    cursor: Box<dyn Cursor>,
    figures: Arc<Figures>,
}

impl Stream for Reading {
    fn advance(&mut self) -> Result<bool> {
        self.cursor.advance()
    }

    fn doc(&self) -> RawDoc<'_> {
        self.cursor.doc()
    }

    fn lend_partials(&mut self) -> bool {
        self.cursor.lend_partials()
    }

    fn partial(&self) -> Option<RawDoc<'_>> {
        self.cursor.partial()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut read = self.figures.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.docs += self.cursor.docs_examined();
        read.keys += self.cursor.keys_examined();
    }
}
