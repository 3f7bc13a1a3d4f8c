//! `$rank`: The document's place in the order; documents at the same place leave gaps behind them.

use espalier_value::Result;

use super::ranking::{self, Ties};
use super::{Definition, Function, Given};

pub(super) static RANK: Definition = Definition {
    name: "$rank",
    parse,
    doc: "The document's place in the order; documents at the same place leave gaps behind them.",
};

fn parse(given: &Given<'_>) -> Result<Function> {
    ranking::parse(given, Ties::Gap)
}
