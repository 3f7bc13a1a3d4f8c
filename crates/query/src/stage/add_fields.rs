//! `$addFields` computes fields beside those there are.

use espalier_value::{Code, Error, Result, ValueRef};

use super::project::Project;
use super::{Definition, Parse, Parser, Stages, one};
use crate::projection::Projection;

pub(super) static ADD_FIELDS: Definition =
    Definition { name: "$addFields", parse: Parse::Stage(parse), doc: "Computes fields beside those there are." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    parse_as(ADD_FIELDS.name, argument, parser)
}

/// The stage under either of its names.
pub(super) fn parse_as(name: &'static str, argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let ValueRef::Document(spec) = argument else {
        let message = format!("{name} specification stage must be an object, got {}", argument.ty().name());
        return Err(Error::new(Code(40272), message));
    };
    let projection =
        Projection::parse_add_fields(spec, parser.scope).map_err(|e| e.context(&format!("Invalid {name}")))?;
    one(Project::new(name, projection))
}
