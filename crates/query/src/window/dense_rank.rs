//! `$denseRank`: The document's place in the order, without gaps behind documents at the same place.

use espalier_value::Result;

use super::ranking::{self, Ties};
use super::{Definition, Function, Given};

pub(super) static DENSE_RANK: Definition = Definition {
    name: "$denseRank",
    parse,
    doc: "The document's place in the order, without gaps behind documents at the same place.",
};

fn parse(given: &Given<'_>) -> Result<Function> {
    ranking::parse(given, Ties::Dense)
}
