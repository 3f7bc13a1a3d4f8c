//! `$skip` leaves out the first documents of the stream.

use std::sync::Arc;

use espalier_value::number::Number;
use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

use super::{Definition, Parse, Parser, Pushdown, Run, Stage, Stages, one};
use crate::context::Context;
use crate::expression::Deps;
use crate::stream::Stream;

pub(super) static SKIP: Definition =
    Definition { name: "$skip", parse: Parse::Stage(parse), doc: "Leaves out the first documents of the stream." };

#[derive(Debug)]
struct Skip {
    count: u64,
}

fn parse(argument: ValueRef<'_>, _parser: &Parser<'_>) -> Result<Stages> {
    one(Skip { count: whole_number("$skip", Code(5107200), argument)? })
}

/// A whole number from zero, in any numeric type.
pub(super) fn whole_number(stage: &str, code: Code, argument: ValueRef<'_>) -> Result<u64> {
    let refuse = |what: &str| Error::new(code, format!("invalid argument to {stage} stage: {what}: {argument}"));
    let number = Number::of(argument).ok_or_else(|| refuse("Expected a number"))?;
    if number.is_nan() {
        return Err(refuse("Expected an integer, but found NaN"));
    }
    let whole = number.as_exact_i64().ok_or_else(|| refuse("Expected an integer that fits into 64 bits"))?;
    u64::try_from(whole).map_err(|_| refuse("Expected a non-negative number"))
}

impl Stage for Skip {
    fn name(&self) -> &'static str {
        SKIP.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Skipped { input, left: self.count, context: run.context.clone() }))
    }

    fn role(&self) -> super::places::Role<'_> {
        super::places::Role::Passes
    }

    fn needs(&self, after: &Deps) -> Deps {
        after.clone()
    }

    fn pushdown(&self) -> Option<Pushdown<'_>> {
        Some(Pushdown::Skip(self.count))
    }
}

struct Skipped {
    input: Box<dyn Stream>,
    left: u64,
    context: Arc<Context>,
}

impl Stream for Skipped {
    fn advance(&mut self) -> Result<bool> {
        while self.left > 0 {
            self.context.interrupt.check()?;
            if !self.input.advance()? {
                return Ok(false);
            }
            self.left -= 1;
        }
        self.input.advance()
    }

    fn doc(&self) -> RawDoc<'_> {
        self.input.doc()
    }
}
