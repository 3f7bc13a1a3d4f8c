//! `$set` is another name of `$addFields`.

use espalier_value::{Result, ValueRef};

use super::{Definition, Parse, Parser, Stages, add_fields};

pub(super) static SET: Definition =
    Definition { name: "$set", parse: Parse::Stage(parse), doc: "Another name of `$addFields`." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    add_fields::parse_as(SET.name, argument, parser)
}
