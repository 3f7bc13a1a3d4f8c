//! `$replaceWith` is `$replaceRoot` with nothing around the new document.

use espalier_value::{Result, ValueRef};

use super::replace_root::ReplaceRoot;
use super::{Definition, Parse, Parser, Stages, one};
use crate::expression::Expression;

pub(super) static REPLACE_WITH: Definition =
    Definition { name: "$replaceWith", parse: Parse::Stage(parse), doc: "Replaces each document by a computed one." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let root = Expression::parse(argument, parser.scope)?;
    one(ReplaceRoot { name: REPLACE_WITH.name, what: "'replacement document'", root })
}
