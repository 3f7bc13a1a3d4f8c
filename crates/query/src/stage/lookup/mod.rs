//! `$lookup` adds an array of documents of another collection: those that equal in a field, the results of a pipeline
//! that can use values of the document, or both.
//!
//! A `$unwind` of the array right behind it becomes part of it, so that the array is never made.

mod join;
mod looking;
mod parse;

use std::sync::Arc;

use espalier_value::{Path, Result};

use super::sub_pipeline::SubPipeline;
use super::unwind::Unwind;
use super::{Definition, Parse, Run, Stage};
use crate::expression::{Deps, Expression};
use crate::stream::Stream;
use join::Join;

pub(super) static LOOKUP: Definition = Definition {
    name: "$lookup",
    parse: Parse::Stage(parse::parse),
    doc: "Adds the matching documents of another collection.",
};

#[derive(Clone, Debug)]
struct Lookup {
    spec: Arc<Spec>,
    /// Takes the place of a `$unwind` of the same path.
    unwind: Option<Unwind>,
}

#[derive(Debug)]
struct Spec {
    as_path: Path,
    /// `localField` and `foreignField`.
    equality: Option<(Path, Path)>,
    lets: Vec<(Box<str>, Expression)>,
    other: SubPipeline,
    /// The pipeline is empty: the matching documents are taken as they are.
    whole: bool,
    /// The results are the same for every document.
    constant: bool,
    /// An equality in the pipeline that finds its documents faster than a scan.
    join: Option<Join>,
}

impl Stage for Lookup {
    fn name(&self) -> &'static str {
        LOOKUP.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(looking::Looking::new(self, input, run)))
    }

    fn needs(&self, after: &Deps) -> Deps {
        let mut needs = after.clone();
        if let Some((local, _)) = &self.spec.equality {
            // A number in the path may be an array index, which is no field: the whole top-level field is read.
            needs.add(local.first());
        }
        self.spec.lets.iter().for_each(|(_, value)| needs.merge(&value.dependencies()));
        needs
    }

    fn absorb(&self, next: &dyn Stage) -> Option<Arc<dyn Stage>> {
        let unwind = next.as_unwind()?;
        // A path below the array, or an index that lands in it, is the unwinding's own business.
        let same = unwind.path == self.spec.as_path;
        let apart = unwind
            .index
            .as_ref()
            .is_none_or(|index| !index.is_prefix_of(&self.spec.as_path) && !self.spec.as_path.is_prefix_of(index));
        (self.unwind.is_none() && same && apart)
            .then(|| Arc::new(Lookup { spec: self.spec.clone(), unwind: Some(unwind.clone()) }) as Arc<dyn Stage>)
    }
}
