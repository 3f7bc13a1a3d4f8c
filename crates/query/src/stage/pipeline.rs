//! A parsed pipeline: its stages in order, what a store does of them, and running the rest.

use std::sync::Arc;

use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawArray, RawDoc, Result, ValueRef};

use super::output::Output;
use super::{Leading, Parser, Pushdown, Run, Stage, Stages, leading, places};
use crate::context::Context;
use crate::expression::{Deps, Scope};
use crate::stream::Stream;

#[derive(Clone, Debug)]
pub struct Pipeline {
    stages: Vec<Arc<dyn Stage>>,
    leading: Leading,
    source: ArrayBuf,
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
        let parsed = parse_stages(stages, parser)?;
        let stages_bound = bound(places::keep(fuse(behind(parsed))));
        let leading = leading::find(&stages_bound, parser)?;
        Ok(Pipeline { stages: stages_bound, leading, source: stages.iter().collect() })
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

/// The stages of a pipeline or of one inside a stage.
pub(super) fn parse_stages(stages: RawArray<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let mut parsed: Vec<Arc<dyn Stage>> = Vec::new();
    for value in stages.iter() {
        let ValueRef::Document(spec) = value else {
            return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
        };
        parsed.extend(parser.stage(spec)?);
    }
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
    Ok(parsed)
}

/// Lets each stage take the next one's work over where it does both better at once.
pub(super) fn fuse(stages: Vec<Arc<dyn Stage>>) -> Vec<Arc<dyn Stage>> {
    let mut fused: Vec<Arc<dyn Stage>> = Vec::with_capacity(stages.len());
    for stage in skip_first(stages) {
        match fused.last().and_then(|before| before.absorb(&*stage)) {
            Some(both) => {
                fused.pop();
                fused.push(both);
            }
            None => fused.push(stage),
        }
    }
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

/// Puts `$skip` and `$limit` before stages that make one document of one: for what is skipped they need not, and must not, run.
fn skip_first(mut stages: Vec<Arc<dyn Stage>>) -> Vec<Arc<dyn Stage>> {
    const SINGLE: [&str; 2] = ["$graphLookup", "$lookup"];
    for at in 1..stages.len() {
        let mut to = at;
        while to > 0
            && matches!(stages[to].pushdown(), Some(Pushdown::Skip(_) | Pushdown::Limit(_)))
            && (stages[to - 1].transform().is_some() || SINGLE.contains(&stages[to - 1].name()))
        {
            stages.swap(to - 1, to);
            to -= 1;
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
