//! `$unionWith` gives its input and then the results of a pipeline on another collection.

use std::sync::Arc;

use espalier_value::{Code, Error, RawArray, RawDoc, Result, ValueRef};

use super::sub_pipeline::{SubPipeline, refuse_writes};
use super::{Definition, Parse, Parser, Run, Stage, Stages, one};
use crate::expression::Deps;
use crate::stream::Stream;

pub(super) static UNION_WITH: Definition =
    Definition { name: "$unionWith", parse: Parse::Stage(parse), doc: "Appends the documents of another collection." };

#[derive(Debug)]
struct UnionWith {
    other: SubPipeline,
    /// A constant part of its pipeline fails.
    early: Option<Error>,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let (mut from, mut stages) = (None, RawArray::of(RawDoc::EMPTY));
    match argument {
        ValueRef::String(name) => from = Some(name),
        ValueRef::Document(spec) => {
            for elem in spec {
                let wrong = |field: &str, expected: &str, found: ValueRef<'_>| {
                    Err(Error::type_mismatch(format!(
                        "BSON field '$unionWith.{field}' is the wrong type '{}', expected type '{expected}'",
                        found.ty().name()
                    )))
                };
                match (elem.name(), elem.value()) {
                    ("coll", ValueRef::String(name)) => from = Some(name),
                    ("coll", other) => return wrong("coll", "string", other),
                    ("pipeline", ValueRef::Array(array)) => {
                        if let Some(other) = array.elems().find(|stage| stage.value().as_doc().is_none()) {
                            return wrong(&format!("pipeline.{}", other.name()), "object", other.value());
                        }
                        stages = array;
                    }
                    ("pipeline", other) => return wrong("pipeline", "array", other),
                    (other, _) => {
                        let message = format!("BSON field '$unionWith.{other}' is an unknown field.");
                        return Err(Error::new(Code(40415), message));
                    }
                }
            }
        }
        other => {
            let what = "the $unionWith stage specification must be an object or string";
            return Err(Error::failed_to_parse(format!("{what}, but found {}", other.ty().name())));
        }
    }
    if from == Some("") {
        return Err(Error::new(Code::InvalidNamespace, "the collection of $unionWith has no name"));
    }
    refuse_writes(stages, 31441, "$unionWith")?;
    let other = SubPipeline::parse(from, stages, parser.scope.apart(), parser, "$unionWith")?;
    let early = other.early();
    one(UnionWith { other, early })
}

impl Stage for UnionWith {
    fn name(&self) -> &'static str {
        UNION_WITH.name
    }

    fn early(&self) -> Option<&Error> {
        self.early.as_ref()
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Union { stage: self, current: input, run: run.clone(), second: false }))
    }

    fn needs(&self, after: &Deps) -> Deps {
        after.clone()
    }
}

struct Union {
    stage: Arc<UnionWith>,
    current: Box<dyn Stream>,
    run: Run,
    second: bool,
}

impl Stream for Union {
    fn advance(&mut self) -> Result<bool> {
        if self.current.advance()? {
            return Ok(true);
        }
        if self.second {
            return Ok(false);
        }
        self.second = true;
        self.current = self.stage.other.prepare(&self.run)?.open(&self.run)?;
        self.current.advance()
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.doc()
    }
}
