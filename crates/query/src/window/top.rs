//! `$top` over a window: The output of the first document of the window in a sort order.

use espalier_value::Result;

use super::ordered::{Kind, Ordered, Show};
use super::{Definition, Function, Given, accumulated};

pub(super) static TOP: Definition =
    Definition { name: "$top", parse, doc: "The output of the first document of the window in a sort order." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |_, context| Ordered::boxed(context, Kind::Pairs, Show::First))
}
