//! `$sample` picks documents at random, each at most once, in random order.

use std::sync::Arc;

use espalier_value::number::Number;
use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

use super::sorter::{Sorted, Sorter};
use super::{Definition, Parse, Parser, Run, Stage, Stages, one};
use crate::expression::Deps;
use crate::stream::Stream;

pub(super) static SAMPLE: Definition =
    Definition { name: "$sample", parse: Parse::Stage(parse), doc: "Picks documents at random." };

#[derive(Debug)]
struct Sample {
    size: u64,
}

fn parse(argument: ValueRef<'_>, _parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let ValueRef::Document(spec) = argument else {
        return refuse(28745, "the $sample stage specification must be an object".into());
    };
    let mut size = None;
    for elem in spec {
        if elem.name() != "size" {
            return refuse(28748, format!("unrecognized option to $sample: {}", elem.name()));
        }
        let Some(number) = Number::of(elem.value()) else {
            return refuse(28746, "size argument to $sample must be a number".into());
        };
        let Ok(whole) = u64::try_from(number.to_i64_clamped()) else {
            return refuse(28747, "size argument to $sample must not be negative".into());
        };
        size = Some(whole);
    }
    match size {
        Some(size) => one(Sample { size }),
        None => refuse(28749, "$sample stage must specify a size".into()),
    }
}

impl Stage for Sample {
    fn name(&self) -> &'static str {
        SAMPLE.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Sampling { size: self.size, input, run: run.clone(), picked: None }))
    }

    fn needs(&self, after: &Deps) -> Deps {
        after.clone()
    }
}

struct Sampling {
    size: u64,
    input: Box<dyn Stream>,
    run: Run,
    picked: Option<Sorted>,
}

impl Sampling {
    /// Sorts by random keys and takes the first: every choice is equally likely.
    fn pick(&mut self) -> Result<Sorted> {
        let mut sorter = Sorter::new("$sample", Some(self.size), &self.run);
        while self.size > 0 && self.input.advance()? {
            self.run.context.interrupt.check()?;
            // A number in [0, 1) orders like its bits.
            sorter.push(&self.run.context.random().to_bits().to_be_bytes(), self.input.doc())?;
        }
        sorter.finish()
    }
}

impl Stream for Sampling {
    fn advance(&mut self) -> Result<bool> {
        if self.picked.is_none() {
            self.picked = Some(self.pick()?);
        }
        self.picked.as_mut().map_or(Ok(false), Sorted::advance)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.picked.as_ref().map_or(RawDoc::EMPTY, Sorted::doc)
    }
}
