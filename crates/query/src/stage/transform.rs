//! Stages that are a function of one document: `$project`, `$addFields`, `$unset`, `$replaceRoot` and their other
//! names. Written once for pipelines and for updates by pipeline.

use std::sync::Arc;

use espalier_value::{DocBuf, RawDoc, Result};

use super::{Run, Stage};
use crate::context::Context;
use crate::stream::{MappedParts, Parts, Stream};

/// Makes one document of one document.
pub trait Transform {
    /// Writes the new document to `out`, replacing what is there.
    fn apply(&self, doc: RawDoc<'_>, context: &Context, out: &mut DocBuf) -> Result<()>;
}

/// The stream of a stage that is a [`Transform`].
pub(super) fn run<T: Stage + Transform + 'static>(
    stage: Arc<T>,
    input: Box<dyn Stream>,
    run: &Run,
) -> Result<Box<dyn Stream>> {
    Ok(Box::new(Transformed { stage, input, context: run.context.clone(), current: DocBuf::new() }))
}

struct Transformed<T> {
    stage: Arc<T>,
    input: Box<dyn Stream>,
    context: Arc<Context>,
    /// Reused, so that it is allocated once.
    current: DocBuf,
}

impl<T: Stage + Transform + 'static> Stream for Transformed<T> {
    fn advance(&mut self) -> Result<bool> {
        if !self.input.advance()? {
            return Ok(false);
        }
        self.stage.apply(self.input.doc(), &self.context, &mut self.current)?;
        Ok(true)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }

    fn parts(&mut self) -> Option<Box<dyn Parts>> {
        let (input, stage, context) = (self.input.parts()?, Arc::clone(&self.stage), Arc::clone(&self.context));
        let map = move |input| -> Box<dyn Stream> {
            let (stage, context) = (Arc::clone(&stage), Arc::clone(&context));
            Box::new(Transformed { stage, input, context, current: DocBuf::new() })
        };
        Some(Box::new(MappedParts { input, map }))
    }
}
