//! `$densify` adds documents where a sequence of numbers or dates has gaps.
//!
//! Parsed into a sort, which a store may answer from an index, and the stage itself, which reads the sorted documents
//! once and remembers for each partition the value that comes next.

use std::ops::Range;
use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, Path, Result};

use super::sort::SortStage;
use super::{Definition, Parse, Run, Stage, Stages};
use crate::expression::{Deps, Scope};
use crate::projection::Projection;
use crate::sort::Sort;
use crate::stream::Stream;

mod densifying;
mod parse;
mod step;

use step::{Scalar, Step};

pub(super) static DENSIFY: Definition = Definition {
    name: "$densify",
    parse: Parse::Stage(parse::parse),
    doc: "Adds documents where a sequence of values has gaps.",
};

/// How far the values go.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bounds {
    /// From the least to the greatest value of all documents.
    Full,
    /// From the least to the greatest value of each partition.
    Partition,
    /// From one value up to, not including, another.
    Range(Scalar, Scalar),
}

#[derive(Debug)]
struct Densify {
    field: Path,
    partition_by: Vec<Path>,
    step: Step,
    bounds: Bounds,
    /// Makes a document of the partition's values and the new one; `None` if the field and a partition field lie in each
    /// other's way, which matters once a document has to be made.
    generator: Option<Vec<Setter>>,
}

/// Sets some of the values: those of the partition fields in their order, then the new one.
#[derive(Debug)]
struct Setter {
    values: Range<usize>,
    projection: Projection,
}

/// The sort and the stage.
fn stages(field: Path, partition_by: Vec<Path>, step: Step, bounds: Bounds, scope: &Scope) -> Result<Stages> {
    let mut order = DocBuf::new();
    // With full bounds the values of all partitions come in one sequence.
    let first = if bounds == Bounds::Full { &[] } else { partition_by.as_slice() };
    for path in first.iter().chain([&field]) {
        if order.as_raw().elem(path.as_str()).is_none() {
            order.append(path.as_str(), 1);
        }
    }
    let sort = Sort::parse(order.as_raw(), scope)?.ok_or_else(|| Error::internal("a sort by one field is a sort"))?;
    let generator = generator(&field, &partition_by)?;
    Ok(vec![Arc::new(SortStage::new(sort)), Arc::new(Densify { field, partition_by, step, bounds, generator })])
}

fn generator(field: &Path, partition_by: &[Path]) -> Result<Option<Vec<Setter>>> {
    let is_in_the_way =
        |path: &Path| field.is_prefix_of(path) || path.is_prefix_of(field) || field.as_str() == path.as_str();
    if partition_by.iter().any(is_in_the_way) {
        return Ok(None);
    }
    let paths: Vec<&Path> = partition_by.iter().chain([field]).collect();
    match setter(&paths, 0) {
        Ok(setter) => Ok(Some(vec![setter])),
        // One partition field lies below another: they are set one after the other.
        Err(error) if error.code() == Code(40176) => {
            paths.iter().enumerate().map(|(at, path)| setter(&[path], at)).collect::<Result<_>>().map(Some)
        }
        Err(error) => Err(error),
    }
}

fn setter(paths: &[&Path], first: usize) -> Result<Setter> {
    let mut spec = DocBuf::new();
    let mut scope = Scope::default();
    for (at, path) in paths.iter().enumerate() {
        let variable = format!("w{at}");
        spec.append(path.as_str(), &format!("$${variable}"));
        scope = scope.with(&variable);
    }
    let projection = Projection::parse_add_fields(spec.as_raw(), &scope)?;
    Ok(Setter { values: first..first + paths.len(), projection })
}

impl Stage for Densify {
    fn name(&self) -> &'static str {
        DENSIFY.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(densifying::Densifying::new(self, input, run)))
    }

    fn needs(&self, after: &Deps) -> Deps {
        let mut needs = after.clone();
        self.partition_by.iter().chain([&self.field]).for_each(|path| needs.add(path.as_str()));
        needs
    }
}

/// More than this many made documents are refused, as MongoDB does.
const GENERATED_MAX: u64 = 500_000;

fn too_many() -> Error {
    let message =
        format!("Generated more than {GENERATED_MAX} documents in $densify: choose a larger step or narrower bounds");
    Error::new(Code(5897900), message)
}
