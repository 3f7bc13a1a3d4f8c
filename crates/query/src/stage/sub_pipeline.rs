//! A pipeline inside a stage, on another collection of the database: what `$lookup`, `$unionWith` and `$graphLookup`
//! have in common.

use std::sync::Arc;

use espalier_value::{Code, Error, RawArray, RawDoc, Result, ValueRef};

use super::{Parser, Pipeline, Run};
use crate::context::Context;
use crate::expression::Scope;
use crate::stream::{Buffered, Stream};

/// MongoDB's limit on pipelines inside pipelines.
const DEPTH_MAX: usize = 20;

/// Parsed with its command; what its collection stands for is found out when it runs, at the command's snapshot.
#[derive(Debug)]
pub(super) struct SubPipeline {
    /// `None`: the first stage makes the documents.
    from: Option<Box<str>>,
    pipeline: Arc<Pipeline>,
    scope: Scope,
    depth: usize,
}

impl SubPipeline {
    /// `scope` has the variables of the stage's own `let`.
    pub fn parse(
        from: Option<&str>,
        stages: RawArray<'_>,
        scope: Scope,
        parser: &Parser<'_>,
        stage: &str,
    ) -> Result<SubPipeline> {
        let depth = parser.depth + 1;
        if depth > DEPTH_MAX {
            let message = format!("Maximum number of nested sub-pipelines exceeded. Limit is {DEPTH_MAX}");
            return Err(Error::new(Code::MaxSubPipelineDepthExceeded, message));
        }
        let inner = Parser { scope: &scope, context: parser.context, depth };
        let pipeline = Arc::new(Pipeline::parse_in(stages, &inner)?);
        if let Some(writing) = pipeline.stages().iter().find(|stage| stage.writes()) {
            // The callers look for these by name, before other errors; here they are inside something.
            return Err(Error::new(Code(51047), format!("{} is not allowed within a {stage}", writing.name())));
        }
        if from.is_none() && !pipeline.is_source() {
            let message = format!(
                "{stage} stage without explicit collection must have a pipeline with $documents as first stage"
            );
            return Err(Error::failed_to_parse(message));
        }
        Ok(SubPipeline { from: from.map(Into::into), pipeline, scope, depth })
    }

    /// What fails in a constant part of it or of a pipeline inside it.
    pub fn early(&self) -> Option<Error> {
        let inside = || self.pipeline.stages().iter().find_map(|stage| stage.early()).cloned();
        self.scope.settle().err().or_else(inside)
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// With what a view stands for in the view's place.
    pub fn prepare(&self, run: &Run) -> Result<Prepared> {
        self.prepare_for(&self.pipeline, run)
    }

    /// The collection's documents without the pipeline, which will run on some of them.
    pub fn prepare_source(&self, run: &Run) -> Result<Prepared> {
        let none = Pipeline::parse(RawArray::of(RawDoc::EMPTY), &self.scope, &run.context)?;
        self.prepare_for(&Arc::new(none), run)
    }

    fn prepare_for(&self, pipeline: &Arc<Pipeline>, run: &Run) -> Result<Prepared> {
        let scope = self.scope.clone();
        let plain = |from: Option<Box<str>>| Prepared { collection: from, pipeline: pipeline.clone(), scope };
        let Some(from) = &self.from else { return Ok(plain(None)) };
        let Some((below, mut stages)) = run.collections()?.view(from, run.context.collator())? else {
            return Ok(plain(Some(from.clone())));
        };
        pipeline.source().iter().for_each(|stage| {
            stages.push(stage);
        });
        let parser = Parser { scope: &self.scope, context: &run.context, depth: self.depth };
        let pipeline = Arc::new(Pipeline::parse_in(stages.as_raw(), &parser)?);
        Ok(Prepared { collection: Some(below), pipeline, scope: self.scope.clone() })
    }
}

/// A pipeline on a collection that is no view.
#[derive(Debug)]
pub(super) struct Prepared {
    pub collection: Option<Box<str>>,
    pub pipeline: Arc<Pipeline>,
    pub scope: Scope,
}

impl Prepared {
    /// Its results, in a context that has values for the variables of its scope.
    pub fn open(&self, run: &Run) -> Result<Box<dyn Stream>> {
        match &self.collection {
            Some(collection) if !self.pipeline.is_source() => {
                let input = run.collections()?.find(collection, self.pipeline.leading(), run)?;
                self.pipeline.run(input, run)
            }
            _ => self.pipeline.run_all(Box::new(Buffered::new(Vec::new())), run),
        }
    }
}

/// Refuses stages by name, as MongoDB does before it looks at anything else in the pipeline.
pub(super) fn refuse_writes(stages: RawArray<'_>, code: i32, stage: &str) -> Result<()> {
    let firsts = stages.iter().filter_map(ValueRef::as_doc).filter_map(RawDoc::first);
    match firsts.map(|first| first.name()).find(|name| matches!(*name, "$out" | "$merge")) {
        Some(name) => Err(Error::new(Code(code), format!("{name} is not allowed within a {stage}'s sub-pipeline"))),
        None => Ok(()),
    }
}

/// True if running it twice may give two results.
pub(super) fn is_random(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Document(doc) => {
            doc.iter().any(|elem| matches!(elem.name(), "$rand" | "$sample" | "$sampleRate") || is_random(elem.value()))
        }
        ValueRef::Array(array) => array.iter().any(is_random),
        _ => false,
    }
}

/// True if the stages can be parsed without these variables, which means that they do not use them.
pub(super) fn is_free_of(stages: RawArray<'_>, names: &[&str], scope: &Scope, context: &Context, depth: usize) -> bool {
    names.is_empty() || Pipeline::parse_in(stages, &Parser { scope: &scope.hiding(names), context, depth }).is_ok()
}
