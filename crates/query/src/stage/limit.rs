//! `$limit` ends the stream after a number of documents.

use std::sync::Arc;

use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

use super::skip::whole_number;
use super::{Definition, Parse, Parser, Pushdown, Run, Stage, Stages, one};
use crate::expression::Deps;
use crate::stream::Stream;

pub(super) static LIMIT: Definition =
    Definition { name: "$limit", parse: Parse::Stage(parse), doc: "Ends the stream after a number of documents." };

#[derive(Debug)]
pub(super) struct Limit {
    count: u64,
}

fn parse(argument: ValueRef<'_>, _parser: &Parser<'_>) -> Result<Stages> {
    match whole_number("$limit", Code(5107201), argument)? {
        0 => Err(Error::new(Code(15958), "the limit must be positive")),
        count => one(Limit { count }),
    }
}

impl Stage for Limit {
    fn name(&self) -> &'static str {
        LIMIT.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, _run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Limited { input, left: self.count }))
    }

    fn role(&self) -> super::places::Role<'_> {
        super::places::Role::Passes
    }

    fn needs(&self, after: &Deps) -> Deps {
        after.clone()
    }

    fn pushdown(&self) -> Option<Pushdown<'_>> {
        Some(Pushdown::Limit(self.count))
    }
}

struct Limited {
    input: Box<dyn Stream>,
    left: u64,
}

impl Stream for Limited {
    fn advance(&mut self) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        self.input.advance()
    }

    fn doc(&self) -> RawDoc<'_> {
        self.input.doc()
    }
}
