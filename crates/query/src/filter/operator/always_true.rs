//! `$alwaysTrue`: every document. Written by tools rather than people. Also holds what `$alwaysFalse` shares with it.

use espalier_value::{DocBuf, Error, RawDoc, Result, ValueRef};

use super::{Operator, Place, integer};
use crate::context::Context;
use crate::filter::parse::Parser;
use crate::filter::{Node, WholePredicate};

pub(super) const ALWAYS_TRUE: Operator =
    Operator { name: "$alwaysTrue", place: Place::Top(parse), doc: "Every document." };

fn parse(argument: ValueRef<'_>, _: &Parser<'_>) -> Result<Option<Node>> {
    constant("$alwaysTrue", true, argument)
}

pub(super) fn constant(name: &'static str, answer: bool, argument: ValueRef<'_>) -> Result<Option<Node>> {
    match integer::whole(name, argument).map_err(Error::failed_to_parse)? {
        1 => Ok(Some(Node::Whole(Box::new(Constant { name, answer })))),
        _ => Err(Error::failed_to_parse(format!("{name} must be an integer value of 1"))),
    }
}

#[derive(Debug)]
struct Constant {
    name: &'static str,
    answer: bool,
}

impl WholePredicate for Constant {
    fn name(&self) -> &'static str {
        self.name
    }

    fn matches(&self, _: RawDoc<'_>, _: &Context) -> Result<bool> {
        Ok(self.answer)
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append(self.name, 1);
    }
}
