//! `$lookup` adds an array of documents of another collection: those that equal in a field, the results of a pipeline
//! that can use values of the document, or both.
//!
//! A `$unwind` of the array right behind it becomes part of it, so that the array is never made.

mod join;
mod looking;
mod parse;

use std::sync::Arc;

use espalier_value::{Error, Path, Result};

use super::origin::{Ahead, Origin, first};
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
    /// A field that is there keeps its place. At the beginning of a pipeline it does not if the `$lookup` is a plain
    /// equality, which MongoDB's other engine takes over.
    in_place: bool,
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
    /// A constant part of the pipeline fails: for the first document, whatever it joins with.
    early: Option<Error>,
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

    fn ahead(&self) -> Ahead {
        if self.unwind.is_some() { Ahead::Never } else { Ahead::Each }
    }

    fn origin(&self, path: &str) -> Origin {
        if first(path) == self.spec.as_path.first() { Origin::Made } else { Origin::Same }
    }

    fn behind(&self) -> Option<Arc<dyn Stage>> {
        Some(Arc::new(Lookup { in_place: true, ..self.clone() }))
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
            .then(|| Arc::new(Lookup { unwind: Some(unwind.clone()), ..self.clone() }) as Arc<dyn Stage>)
    }
}
