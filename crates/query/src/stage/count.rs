//! `$count` gives one document with the number of documents, and nothing if there were none.

use std::sync::Arc;

use espalier_value::number::Number;
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef};

use super::{Definition, Group, Parse, Parser, Run, Stage, Stages, one};
use crate::accumulator;
use crate::context::Context;
use crate::expression::{Deps, Expression, Scope};
use crate::stream::Stream;

pub(super) static COUNT: Definition =
    Definition { name: "$count", parse: Parse::Stage(parse), doc: "Gives the number of documents." };

#[derive(Debug)]
struct Count {
    field: Box<str>,
    /// The group of all documents with their number.
    group: Arc<Group>,
}

fn parse(argument: ValueRef<'_>, _parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: &str| Err(Error::new(Code(code), message));
    let ValueRef::String(field) = argument else {
        return refuse(40156, "the count field must be a non-empty string");
    };
    match field {
        "" => refuse(40157, "the count field must be a non-empty string"),
        // MongoDB counts with a $group, which has an _id of its own.
        "_id" => refuse(15948, "a group's _id may only be specified once"),
        _ if field.starts_with('$') => refuse(40158, "the count field cannot be a $-prefixed path"),
        _ if field.contains('\0') => refuse(40159, "the count field cannot contain a null byte"),
        _ if field.contains('.') => refuse(40160, "the count field cannot contain '.'"),
        _ => {
            let mut spec = DocBuf::new();
            spec.append_doc("$count", |_| {});
            let count = accumulator::parse("n", spec.as_raw().into(), &Scope::default())?;
            let group = Group::new(Expression::literal(ValueRef::Null), vec![("n".into(), count)]);
            one(Count { field: field.into(), group: Arc::new(group) })
        }
    }
}

impl Stage for Count {
    fn name(&self) -> &'static str {
        COUNT.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Counted { stage: self, input, context: run.context.clone(), result: None }))
    }

    fn needs(&self, _after: &Deps) -> Deps {
        Deps::default()
    }

    fn group(self: Arc<Self>) -> Option<Arc<Group>> {
        Some(self.group.clone())
    }
}

struct Counted {
    stage: Arc<Count>,
    input: Box<dyn Stream>,
    context: Arc<Context>,
    result: Option<DocBuf>,
}

impl Stream for Counted {
    fn advance(&mut self) -> Result<bool> {
        if self.result.is_some() {
            return Ok(false);
        }
        let mut count: i64 = 0;
        let partials = self.input.lend_partials();
        while self.input.advance()? {
            self.context.interrupt.check()?;
            let many = if partials { self.input.partial().and_then(|partial| partial.iter().nth(1)) } else { None };
            count += many.and_then(|many| Number::of(many.value())).map_or(1, Number::to_i64_clamped);
        }
        let mut result = DocBuf::new();
        result.append(&self.stage.field, Number::narrowest(count).to_value());
        self.result = Some(result);
        Ok(count > 0)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.result.as_ref().map_or(RawDoc::EMPTY, DocBuf::as_raw)
    }
}
