//! What running a pipeline needs besides the documents: the command's context, limits, room on disk and a way to
//! other collections. The last two are traits here, because this crate opens no file.

use std::fmt::Debug;
use std::sync::Arc;

use espalier_value::{RawDoc, Result};

use crate::context::Context;
use crate::filter::Filter;
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

/// Reads other collections at the snapshot of the command, for stages such as `$lookup` and `$unionWith`.
pub trait Collections: Debug + Send + Sync {
    /// The documents of a collection of the same database that match. A view reads as its result.
    fn find(&self, collection: &str, filter: &Filter, context: &Arc<Context>) -> Result<Box<dyn Stream>>;

    /// The documents whose field at a path equals a value, each shown to `found`: the inner loop of `$lookup`,
    /// which a store answers from an index.
    fn each_equal(
        &self,
        collection: &str,
        path: &str,
        value: espalier_value::ValueRef<'_>,
        found: &mut dyn FnMut(RawDoc<'_>) -> Result<()>,
    ) -> Result<()>;
}
