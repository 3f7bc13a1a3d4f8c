//! `$bottomN` over a window: The outputs of the last n documents of the window in a sort order.

use espalier_value::Result;

use super::ordered::{Kind, Ordered, Show};
use super::{Definition, Function, Given, accumulated};

pub(super) static BOTTOM_N: Definition =
    Definition { name: "$bottomN", parse, doc: "The outputs of the last n documents of the window in a sort order." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |n, context| Ordered::boxed(context, Kind::Pairs, Show::GreatestAscending(n)))
}
