//! `$topN` over a window: The outputs of the first n documents of the window in a sort order.

use espalier_value::Result;

use super::ordered::{Kind, Ordered, Show};
use super::{Definition, Function, Given, accumulated};

pub(super) static TOP_N: Definition =
    Definition { name: "$topN", parse, doc: "The outputs of the first n documents of the window in a sort order." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |n, context| Ordered::boxed(context, Kind::Pairs, Show::Least(n)))
}
