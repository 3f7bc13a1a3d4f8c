//! `$documents` gives the documents written in the pipeline, instead of a collection's.

use std::sync::Arc;

use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

use super::{Definition, Parse, Parser, Run, Stage, Stages, one};
use crate::expression::{Deps, Env, Expression};
use crate::stream::{Buffered, Stream};

pub(super) static DOCUMENTS: Definition =
    Definition { name: "$documents", parse: Parse::Stage(parse), doc: "Gives the documents written in the pipeline." };

#[derive(Debug)]
struct Documents {
    array: Expression,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    one(Documents { array: Expression::parse(argument, parser.scope)? })
}

impl Stage for Documents {
    fn name(&self) -> &'static str {
        DOCUMENTS.name
    }

    fn run(self: Arc<Self>, _input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        let env = Env::new(RawDoc::EMPTY, &run.context);
        let value = self.array.eval(&env)?;
        let Some(ValueRef::Array(array)) = value.as_ref() else {
            return Err(Error::new(Code(5858203), "an array is expected"));
        };
        let mut docs = Vec::new();
        for value in array.iter() {
            let ValueRef::Document(doc) = value else {
                let message = format!(
                    "elements within the array passed to $documents must evaluate to an object, but resulting value \
                     was: {value}. Type of resulting value: '{}'.",
                    value.ty().name()
                );
                return Err(Error::new(Code(40228), message));
            };
            docs.push(espalier_value::DocBuf::from_raw(doc));
        }
        Ok(Box::new(Buffered::new(docs)))
    }

    fn needs(&self, _after: &Deps) -> Deps {
        Deps::default()
    }

    fn is_source(&self) -> bool {
        true
    }
}
