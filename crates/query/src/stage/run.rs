//! What running a pipeline needs besides the documents: the command's context, limits, room on disk and a way to
//! other collections. The last two are traits here, because this crate opens no file.

use std::fmt::Debug;
use std::sync::Arc;

use espalier_value::{ArrayBuf, Collator, Error, Result};

use super::Leading;
use crate::context::Context;
use crate::stream::Stream;

/// Shared by the stages of one pipeline.
#[derive(Clone, Debug)]
pub struct Run {
    pub context: Arc<Context>,
    pub limits: Limits,
    /// Where a stage that exceeds its memory puts the rest; `None` if it must not, as with `allowDiskUse: false`.
    pub spill: Option<Arc<dyn Spill>>,
    /// Other collections of the database; `None` where a pipeline may not read them.
    pub collections: Option<Arc<dyn Collections>>,
}

impl Run {
    /// With the default limits, without disk and without other collections.
    pub fn new(context: Arc<Context>) -> Run {
        Run { context, limits: Limits::default(), spill: None, collections: None }
    }

    /// The same for a pipeline inside a stage, whose variables have values of their own.
    pub(super) fn within(&self, context: Arc<Context>) -> Run {
        Run { context, ..self.clone() }
    }

    pub(super) fn collections(&self) -> Result<&Arc<dyn Collections>> {
        self.collections.as_ref().ok_or_else(|| Error::internal("other collections cannot be read here"))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// What one blocking stage may hold in memory.
    pub stage_memory_bytes_max: usize,
    /// What a document that a stage makes may measure.
    pub document_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { stage_memory_bytes_max: 100 << 20, document_bytes_max: 16 << 20 }
    }
}

/// Makes temporary files.
pub trait Spill: Debug + Send + Sync {
    fn create(&self) -> Result<Box<dyn SpillFile>>;
}

/// A temporary file: written once, then read from the start, perhaps several times. It is gone when dropped.
pub trait SpillFile: Send {
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Ends the writing; reads start at the beginning, also if some have been made.
    fn rewind(&mut self) -> Result<()>;

    /// Reads up to `out.len()` bytes; 0 only at the end.
    fn read(&mut self, out: &mut [u8]) -> Result<usize>;
}

/// Reads other collections of the same database at the snapshot of the command, for stages such as `$lookup` and
/// `$unionWith`.
pub trait Collections: Debug + Send + Sync {
    /// What a view stands for: the collection below it and the stages on that, views between them included. `None` if
    /// the name is not a view's.
    fn view(&self, name: &str, collator: Collator<'_>) -> Result<Option<(Box<str>, ArrayBuf)>>;

    /// What a collection that is no view has for the beginning of a pipeline; nothing if it does not exist.
    fn find(&self, collection: &str, leading: &Leading, run: &Run) -> Result<Box<dyn Stream>>;

    /// True if an index leads to the documents with a given value at the path, whatever the value.
    fn has_index(&self, collection: &str, path: &str, collator: Collator<'_>) -> Result<bool>;
}
