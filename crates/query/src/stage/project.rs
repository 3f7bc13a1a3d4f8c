//! `$project` picks, leaves out and computes fields.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef};

use super::{Definition, Parse, Parser, Run, Stage, Stages, Transform, one, transform};
use crate::context::Context;
use crate::expression::Deps;
use crate::projection::{Kind, Projection};
use crate::stream::Stream;

pub(super) static PROJECT: Definition =
    Definition { name: "$project", parse: Parse::Stage(parse), doc: "Picks, leaves out and computes fields." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let ValueRef::Document(spec) = argument else {
        return Err(Error::new(Code(15969), "$project specification must be an object"));
    };
    let projection =
        Projection::parse(spec, parser.scope, Kind::Aggregate).map_err(|e| e.context("Invalid $project"))?;
    one(Project { name: PROJECT.name, projection })
}

/// A projection as a stage; `$unset`, `$addFields` and `$set` are others.
#[derive(Debug)]
pub(super) struct Project {
    pub name: &'static str,
    pub projection: Projection,
}

impl Stage for Project {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        transform::run(self, input, run)
    }

    fn needs(&self, after: &Deps) -> Deps {
        self.projection.needs(after)
    }

    fn transform(&self) -> Option<&dyn Transform> {
        Some(self)
    }
}

impl Transform for Project {
    fn apply(&self, doc: RawDoc<'_>, context: &Context, out: &mut DocBuf) -> Result<()> {
        self.projection.apply(doc, None, context, out)
    }
}
