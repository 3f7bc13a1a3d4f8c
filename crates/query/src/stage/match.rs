//! `$match` lets the documents through that a filter accepts.

use std::sync::Arc;

use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

use super::{Definition, Parse, Parser, Pushdown, Run, Stage, Stages, one};
use crate::context::Context;
use crate::expression::Deps;
use crate::filter::Filter;
use crate::stream::{MappedParts, Parts, Stream};

pub(super) static MATCH: Definition =
    Definition { name: "$match", parse: Parse::Stage(parse), doc: "Lets the documents through that a filter accepts." };

#[derive(Debug)]
struct Match {
    filter: Arc<Filter>,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let ValueRef::Document(filter) = argument else {
        return Err(Error::new(Code(15959), "the match filter must be an expression in an object"));
    };
    one(Match { filter: Arc::new(Filter::parse_deferring(filter, parser.scope)?) })
}

impl Stage for Match {
    fn name(&self) -> &'static str {
        MATCH.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Matched { filter: self.filter.clone(), input, context: run.context.clone() }))
    }

    fn role(&self) -> super::places::Role<'_> {
        super::places::Role::Passes
    }

    fn needs(&self, after: &Deps) -> Deps {
        let mut needs = after.clone();
        super::collect_filter(self.filter.root(), &mut needs);
        needs
    }

    fn pushdown(&self) -> Option<Pushdown<'_>> {
        Some(Pushdown::Filter(&self.filter))
    }
}

struct Matched {
    filter: Arc<Filter>,
    input: Box<dyn Stream>,
    context: Arc<Context>,
}

impl Stream for Matched {
    fn advance(&mut self) -> Result<bool> {
        while self.input.advance()? {
            self.context.interrupt.check()?;
            if self.filter.matches(self.input.doc(), &self.context)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.input.doc()
    }

    fn parts(&mut self) -> Option<Box<dyn Parts>> {
        let (input, filter, context) = (self.input.parts()?, Arc::clone(&self.filter), Arc::clone(&self.context));
        let map = move |input| -> Box<dyn Stream> {
            Box::new(Matched { filter: Arc::clone(&filter), input, context: Arc::clone(&context) })
        };
        Some(Box::new(MappedParts { input, map }))
    }
}
