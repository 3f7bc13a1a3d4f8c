//! `$minN` over a window: The n smallest values of the window.

use espalier_value::Result;

use super::ordered::{Kind, Ordered, Show};
use super::{Definition, Function, Given, accumulated};

pub(super) static MIN_N: Definition = Definition { name: "$minN", parse, doc: "The n smallest values of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |n, context| Ordered::boxed(context, Kind::Values, Show::Least(n)))
}
