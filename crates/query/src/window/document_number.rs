//! `$documentNumber`: The document's number in its partition.

use espalier_value::Result;

use super::ranking::{self, Ties};
use super::{Definition, Function, Given};

pub(super) static DOCUMENT_NUMBER: Definition =
    Definition { name: "$documentNumber", parse, doc: "The document's number in its partition." };

fn parse(given: &Given<'_>) -> Result<Function> {
    ranking::parse(given, Ties::None)
}
