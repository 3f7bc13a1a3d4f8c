//! A parsed pipeline: its stages in order, what a store does of them, and running the rest.

use std::sync::Arc;

use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawArray, RawDoc, Result, ValueRef};

use super::output::Output;
use super::{Leading, Parser, Pushdown, Run, Stage, Stages, arrange, leading, places};
use crate::context::Context;
use crate::expression::{Deps, Scope};
use crate::stream::Stream;

#[derive(Clone, Debug)]
pub struct Pipeline {
    stages: Vec<Arc<dyn Stage>>,
    leading: Leading,
    source: ArrayBuf,
    /// For each stage what it was written as; several for one that does the work of several, none for one that another
    /// is short for.
    written: Vec<Vec<DocBuf>>,
}

impl Pipeline {
    /// Parses every stage before anything runs.
    pub fn parse(stages: RawArray<'_>, scope: &Scope, context: &Context) -> Result<Pipeline> {
        let pipeline = Pipeline::parse_in(stages, &Parser { scope, context, depth: 0 })?;
        scope.settle()?;
        match pipeline.stages.iter().find_map(|stage| stage.early()) {
            Some(error) => Err(error.clone()),
            None => Ok(pipeline),
        }
    }

    /// As [`Pipeline::parse`], but what fails in the constant parts of expressions fails when it is run.
    pub(crate) fn parse_deferring(stages: RawArray<'_>, scope: &Scope, context: &Context) -> Result<Pipeline> {
        Pipeline::parse_in(stages, &Parser { scope, context, depth: 0 })
    }

    /// As [`Pipeline::parse`], for a pipeline inside a stage.
    pub(super) fn parse_in(stages: RawArray<'_>, parser: &Parser<'_>) -> Result<Pipeline> {
        let mut written: Vec<Vec<DocBuf>> = Vec::new();
        let mut arranged: Stages = Vec::new();
        for step in arrange::arrange(parse_steps(stages, parser)?, parser)? {
            // Of several stages, the one that has the name is the one that is written.
            let name = step.source.as_raw().first().map(|elem| elem.name()).unwrap_or_default();
            let named = step.stages.iter().position(|stage| stage.name() == name).unwrap_or(0);
            let at = arranged.len() + named;
            arranged.extend(step.stages);
            written.resize(arranged.len(), Vec::new());
            if let Some(written) = written.get_mut(at) {
                written.push(step.source);
            }
        }
        let stages_bound = bound(places::keep(fuse_written(behind(arranged), &mut written)));
        let leading = leading::find(&stages_bound, parser)?;
        Ok(Pipeline { stages: stages_bound, leading, source: stages.iter().collect(), written })
    }

    /// What the store can do of it. A pipeline that [`Pipeline::is_source`] asks the store for nothing.
    pub fn leading(&self) -> &Leading {
        &self.leading
    }

    /// True if the first stage makes the documents itself.
    pub fn is_source(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.is_source())
    }

    /// Where the results are to be written, if not to the client.
    pub fn output(&self) -> Option<&Output> {
        self.stages.last().and_then(|stage| stage.output())
    }

    pub fn stages(&self) -> &[Arc<dyn Stage>] {
        &self.stages
    }

    /// The stages that [`Pipeline::leading`] does not stand for.
    pub fn rest(&self) -> &[Arc<dyn Stage>] {
        &self.stages[self.leading.stages..]
    }

    /// The stages of [`Pipeline::rest`] as they would be written, in the order in which they run; several for one that
    /// does the work of several, none for one that belongs to the one before.
    pub fn rest_written(&self) -> &[Vec<DocBuf>] {
        &self.written[self.leading.stages..]
    }

    #[cfg(test)]
    pub(super) fn written(&self) -> &[Vec<DocBuf>] {
        &self.written
    }

    /// As the client wrote it.
    pub fn source(&self) -> RawArray<'_> {
        self.source.as_raw()
    }

    /// Runs what [`Pipeline::leading`] left over on what the store gave for it.
    pub fn run(&self, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        string_together(self.rest(), input, run)
    }

    /// Runs all of it, on documents that nothing has been done to.
    pub fn run_all(&self, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        string_together(&self.stages, input, run)
    }

    /// What all of it reads of its input.
    pub fn needs(&self) -> Deps {
        leading::needs(&self.stages)
    }

    /// True if every stage is a function of one document, so that [`Pipeline::apply_one`] works.
    pub fn is_transform(&self) -> bool {
        self.stages.iter().all(|stage| stage.transform().is_some())
    }

    /// Applies the stages to one document, as an update by pipeline does; `out` is replaced.
    pub fn apply_one(&self, doc: RawDoc<'_>, context: &Context, out: &mut DocBuf) -> Result<()> {
        out.clear();
        out.append_with(|bytes| bytes.extend_from_slice(doc.iter().rest()));
        let mut next = DocBuf::new();
        for stage in &self.stages {
            let Some(transform) = stage.transform() else {
                let message = format!("{} is not allowed to be used within an update", stage.name());
                return Err(Error::new(Code::InvalidOptions, message));
            };
            transform.apply(out.as_raw(), context, &mut next)?;
            std::mem::swap(out, &mut next);
        }
        Ok(())
    }
}

/// The stages of a pipeline inside a stage, in their best order.
pub(super) fn parse_stages(stages: RawArray<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let steps = arrange::arrange(parse_steps(stages, parser)?, parser)?;
    Ok(steps.into_iter().flat_map(|step| step.stages).collect())
}

/// The stages as they are written, with what they stand for.
fn parse_steps<'s>(stages: RawArray<'s>, parser: &Parser<'_>) -> Result<Vec<(RawDoc<'s>, Stages)>> {
    let mut steps = Vec::new();
    for value in stages.iter() {
        let ValueRef::Document(spec) = value else {
            return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
        };
        steps.push((spec, parser.stage(spec)?));
    }
    let parsed: Vec<&Arc<dyn Stage>> = steps.iter().flat_map(|(_, stages)| stages).collect();
    for (at, stage) in parsed.iter().enumerate() {
        if at > 0 && stage.is_source() {
            let message = format!("{} is only valid as the first stage in a pipeline", stage.name());
            return Err(Error::new(Code(40602), message));
        }
        if at + 1 < parsed.len() && stage.writes() {
            return Err(Error::new(
                Code(40601),
                format!("{} can only be the final stage in the pipeline", stage.name()),
            ));
        }
    }
    Ok(steps)
}

/// Lets each stage take the next one's work over where it does both better at once.
pub(super) fn fuse(stages: Vec<Arc<dyn Stage>>) -> Vec<Arc<dyn Stage>> {
    let mut written = vec![Vec::new(); stages.len()];
    fuse_written(stages, &mut written)
}

fn fuse_written(stages: Vec<Arc<dyn Stage>>, written: &mut Vec<Vec<DocBuf>>) -> Vec<Arc<dyn Stage>> {
    let mut fused: Vec<Arc<dyn Stage>> = Vec::with_capacity(stages.len());
    let mut sources: Vec<Vec<DocBuf>> = Vec::with_capacity(stages.len());
    for (stage, source) in stages.into_iter().zip(written.drain(..)) {
        match fused.last().and_then(|before| before.absorb(&*stage)) {
            Some(both) => {
                fused.pop();
                fused.push(both);
                sources.last_mut().into_iter().for_each(|before| before.extend_from_slice(&source));
            }
            None => {
                fused.push(stage);
                sources.push(source);
            }
        }
    }
    *written = sources;
    fused
}

/// Tells the stages that do not belong to the beginning of the pipeline.
fn behind(mut stages: Vec<Arc<dyn Stage>>) -> Vec<Arc<dyn Stage>> {
    const BEGINNING: [&str; 7] = ["$group", "$limit", "$lookup", "$match", "$project", "$skip", "$sort"];
    for stage in stages.iter_mut().skip_while(|stage| BEGINNING.contains(&stage.name())) {
        if let Some(other) = stage.behind() {
            *stage = other;
        }
    }
    stages
}

/// Tells each stage how much of its output is looked at, where a `$limit` follows.
pub(super) fn bound(mut stages: Vec<Arc<dyn Stage>>) -> Vec<Arc<dyn Stage>> {
    for at in 0..stages.len() {
        if let Some(count) = looked_at(&stages[at + 1..])
            && let Some(bounded) = stages[at].first(count)
        {
            stages[at] = bounded;
        }
    }
    stages
}

fn looked_at(stages: &[Arc<dyn Stage>]) -> Option<u64> {
    let mut skipped: u64 = 0;
    for stage in stages {
        match stage.pushdown() {
            Some(Pushdown::Skip(count)) => skipped = skipped.saturating_add(count),
            Some(Pushdown::Limit(count)) => return Some(skipped.saturating_add(count)),
            _ => return None,
        }
    }
    None
}

pub(super) fn string_together(stages: &[Arc<dyn Stage>], input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
    stages.iter().try_fold(input, |input, stage| stage.clone().run(input, run))
}
