//! What a find shows of the logical documents that it has found: skipped, cut and projected.

use std::sync::Arc;

use espalier_query::projection::Projection;
use espalier_query::{Context, Stream};
use espalier_store::{Cursor, Verbosity};
use espalier_value::{DocBuf, RawDoc, Result};

/// Logical documents one after the other, wherever they come from.
pub trait Documents: Send {
    /// False after the last, and it is not asked again.
    fn next(&mut self) -> Result<bool>;
    fn document(&self) -> RawDoc<'_>;
    /// Keys and documents read to find them.
    fn examined(&self) -> (u64, u64);
    fn plan_summary(&self) -> String;
}

/// The cursor over some of them.
pub struct Shown<D> {
    documents: D,
    part: Part,
    projected: Option<DocBuf>,
    ended: bool,
}

/// Which of the documents are shown, and how.
pub struct Part {
    pub skip: u64,
    pub limit: Option<u64>,
    pub projection: Option<Arc<Projection>>,
    pub context: Arc<Context>,
}

impl<D: Documents> Shown<D> {
    pub fn new(documents: D, part: Part) -> Shown<D> {
        Shown { documents, part, projected: None, ended: false }
    }
}

impl<D: Documents> Stream for Shown<D> {
    fn advance(&mut self) -> Result<bool> {
        if self.ended || self.part.limit == Some(0) {
            return Ok(false);
        }
        while self.documents.next()? {
            if self.part.skip > 0 {
                self.part.skip -= 1;
                continue;
            }
            if let Some(limit) = &mut self.part.limit {
                *limit -= 1;
            }
            if let Some(projection) = &self.part.projection {
                let mut out = self.projected.take().unwrap_or_default();
                projection.apply(self.documents.document(), None, &self.part.context, &mut out)?;
                self.projected = Some(out);
            }
            return Ok(true);
        }
        self.ended = true;
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        match &self.projected {
            Some(projected) => projected.as_raw(),
            None => self.documents.document(),
        }
    }
}

impl<D: Documents> Cursor for Shown<D> {
    fn keys_examined(&self) -> u64 {
        self.documents.examined().0
    }

    fn docs_examined(&self) -> u64 {
        self.documents.examined().1
    }

    fn plan_summary(&self) -> String {
        self.documents.plan_summary()
    }
}

/// For `explain`: does the find and adds its figures, if they are asked for.
pub fn figures(about: &mut DocBuf, verbosity: Verbosity, find: impl FnOnce() -> Result<Box<dyn Cursor>>) -> Result<()> {
    if verbosity == Verbosity::QueryPlanner {
        return Ok(());
    }
    let mut cursor = find()?;
    let mut returned = 0i64;
    while cursor.advance()? {
        returned += 1;
    }
    about
        .append("nReturned", returned)
        .append("totalKeysExamined", cursor.keys_examined() as i64)
        .append("totalDocsExamined", cursor.docs_examined() as i64);
    Ok(())
}
