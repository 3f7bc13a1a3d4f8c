//! Running a pipeline: what a store can do of it is asked of the store, the stages do the rest.

use std::sync::Arc;

use espalier_query::stage::{Pipeline, Run};
use espalier_query::stream::Buffered;
use espalier_query::{Context, Stream};
use espalier_store::{Find, Hint, Namespace, Transaction};
use espalier_value::Result;

use crate::call::Call;
use crate::collections::{AtSnapshot, find_for};
use crate::cursors::Source;

/// How a command wants its pipeline run.
#[derive(Clone, Copy)]
pub struct How<'h> {
    pub context: &'h Arc<Context>,
    pub hint: Option<&'h Hint>,
    pub allow_disk_use: bool,
}

/// What is asked of the store.
pub fn find(pipeline: &Pipeline, how: &How<'_>) -> Find {
    let mut find = find_for(pipeline.leading(), how.context);
    find.hint = how.hint.cloned();
    find.allow_disk_use = how.allow_disk_use;
    find
}

/// The results on a collection that is no view.
pub fn open(
    pipeline: &Pipeline,
    ns: &Namespace,
    how: &How<'_>,
    transaction: Box<dyn Transaction>,
    call: &Call<'_>,
) -> Result<Source> {
    if pipeline.is_source() {
        return on(pipeline, Vec::new(), ns.db(), how, transaction, call);
    }
    let cursor = transaction.find(ns, &find(pipeline, how))?;
    if pipeline.rest().is_empty() {
        return Ok(Source::Find(cursor));
    }
    Ok(Source::Pipeline(pipeline.run(cursor, &run(ns.db(), how, transaction, call))?))
}

/// The results on documents that are there already.
pub fn on(
    pipeline: &Pipeline,
    docs: Vec<espalier_value::DocBuf>,
    db: &str,
    how: &How<'_>,
    transaction: Box<dyn Transaction>,
    call: &Call<'_>,
) -> Result<Source> {
    let input: Box<dyn Stream> = Box::new(Buffered::new(docs));
    Ok(Source::Pipeline(pipeline.run_all(input, &run(db, how, transaction, call))?))
}

fn run(db: &str, how: &How<'_>, transaction: Box<dyn Transaction>, call: &Call<'_>) -> Run {
    let mut run = run_with(how, call);
    run.collections = Some(Arc::new(AtSnapshot::new(db, transaction)));
    run
}

/// What a pipeline of the command runs with, other collections aside.
pub fn run_with(how: &How<'_>, call: &Call<'_>) -> Run {
    let mut run = Run::new(Arc::clone(how.context));
    run.limits.stage_memory_bytes_max = call.server.options.limits.sort_bytes_max as usize;
    run.limits.document_bytes_max = call.server.options.limits.document_bytes_max as usize;
    if how.allow_disk_use {
        run.spill = call.server.store.spill();
    }
    run
}
