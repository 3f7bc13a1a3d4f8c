//! `$project` picks, leaves out and computes fields.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef, place};

use super::origin::{Ahead, Origin};
use super::places::{Places, Role};
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
    one(Project::new(PROJECT.name, projection))
}

/// A projection as a stage; `$unset`, `$addFields` and `$set` are others.
#[derive(Debug)]
pub(super) struct Project {
    name: &'static str,
    projection: Arc<Projection>,
    places: Places,
}

impl Project {
    pub fn new(name: &'static str, projection: Projection) -> Project {
        Project { name, projection: Arc::new(projection), places: Places::Drop }
    }
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

    fn ahead(&self) -> Ahead {
        Ahead::Each
    }

    fn origin(&self, path: &str) -> Origin {
        self.projection.origin(path)
    }

    fn role(&self) -> Role<'_> {
        Role::Changes { vacates: self.projection.vacates().collect(), fills: self.projection.fills().collect() }
    }

    fn with_places(&self, places: Places) -> Option<Arc<dyn Stage>> {
        Some(Arc::new(Project { name: self.name, projection: self.projection.clone(), places }))
    }
}

impl Transform for Project {
    fn apply(&self, doc: RawDoc<'_>, context: &Context, out: &mut DocBuf) -> Result<()> {
        if self.places == Places::Drop {
            return self.projection.apply(doc, None, context, out);
        }
        self.projection.apply_keeping(doc, context, out)?;
        if self.places == Places::End && place::may_hold(out.as_raw()) {
            let mut stripped = DocBuf::new();
            stripped.append_with(|bytes| place::strip(out.as_raw(), bytes));
            *out = stripped;
        }
        Ok(())
    }
}
