//! `$sampleRate`: each document with a given probability.

use espalier_value::number::Number;
use espalier_value::{DocBuf, Error, RawDoc, Result, ValueRef};

use super::{Operator, Place};
use crate::context::Context;
use crate::filter::parse::Parser;
use crate::filter::{Node, WholePredicate};

pub(super) const SAMPLE_RATE: Operator =
    Operator { name: "$sampleRate", place: Place::Top(parse), doc: "Each document with the given probability." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Option<Node>> {
    let Some(number) = Number::of(argument) else {
        return Err(Error::bad_value("argument to $sampleRate must be a numeric type"));
    };
    let rate = number.to_f64();
    if !(0.0..=1.0).contains(&rate) {
        return Err(Error::bad_value("numeric argument to $sampleRate must be in [0, 1]"));
    }
    parser.refuse_restricted("$expr")?;
    Ok(Some(Node::Whole(Box::new(SampleRate { rate }))))
}

#[derive(Debug)]
struct SampleRate {
    rate: f64,
}

impl WholePredicate for SampleRate {
    fn name(&self) -> &'static str {
        "$sampleRate"
    }

    fn matches(&self, _: RawDoc<'_>, context: &Context) -> Result<bool> {
        Ok(context.random() < self.rate)
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append("$sampleRate", self.rate);
    }
}
