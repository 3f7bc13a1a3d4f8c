//! `$addToSet` over a window: The distinct values of the window.

use espalier_value::Result;

use super::ordered::{Kind, Ordered, Show};
use super::{Definition, Function, Given, accumulated};

pub(super) static ADD_TO_SET: Definition =
    Definition { name: "$addToSet", parse, doc: "The distinct values of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |_, context| Ordered::boxed(context, Kind::Set, Show::Distinct))
}
