//! `$out` replaces a collection by the results.

use std::sync::Arc;

use espalier_value::{Code, Error, Result, ValueRef};

use super::output::{Output, Target};
use super::{Definition, Parse, Parser, Run, Stage, Stages, one};
use crate::expression::Deps;
use crate::stream::Stream;

pub(super) static OUT: Definition =
    Definition { name: "$out", parse: Parse::Stage(parse), doc: "Replaces a collection by the results." };

#[derive(Debug)]
struct Out {
    output: Output,
}

fn parse(argument: ValueRef<'_>, _parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let target = match argument {
        ValueRef::String(collection) => Target { db: None, collection: collection.into() },
        ValueRef::Document(spec) => {
            let (Some(db), Some(collection), 2) = (spec.get("db"), spec.get("coll"), spec.count()) else {
                let what = "it must have exactly 2 fields: 'db' and 'coll'";
                return refuse(16994, format!("If an object is passed to $out {what}"));
            };
            let text = |name: &str, value: ValueRef<'_>| match value {
                ValueRef::String(text) => Ok(text.into()),
                other => {
                    let message = format!("wrong type for field ({name}) {} != string", other.ty().name());
                    Err(Error::new(Code(13111), message))
                }
            };
            Target { db: Some(text("db", db)?), collection: text("coll", collection)? }
        }
        other => {
            let found = other.ty().name();
            return refuse(16990, format!("$out only supports a string or object argument, but found {found}"));
        }
    };
    if target.collection.is_empty() || target.db.as_deref() == Some("") {
        let message = format!("Invalid $out target namespace: '{}'", target.collection);
        return Err(Error::new(Code::InvalidNamespace, message));
    }
    if let Some(db @ ("admin" | "config" | "local")) = target.db.as_deref() {
        return refuse(31321, format!("Can't $out to internal database: {db}"));
    }
    if target.collection.starts_with("system.") {
        return refuse(17385, format!("Can't $out to special collection: {}", target.collection));
    }
    one(Out { output: Output::Replace(target) })
}

impl Stage for Out {
    fn name(&self) -> &'static str {
        OUT.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, _run: &Run) -> Result<Box<dyn Stream>> {
        Ok(input)
    }

    fn needs(&self, _after: &Deps) -> Deps {
        Deps::whole()
    }

    fn writes(&self) -> bool {
        true
    }

    fn output(&self) -> Option<&Output> {
        Some(&self.output)
    }
}
