//! `$maxN` over a window: The n greatest values of the window.

use espalier_value::Result;

use super::ordered::{Kind, Ordered, Show};
use super::{Definition, Function, Given, accumulated};

pub(super) static MAX_N: Definition = Definition { name: "$maxN", parse, doc: "The n greatest values of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |n, context| Ordered::boxed(context, Kind::Values, Show::Greatest(n)))
}
