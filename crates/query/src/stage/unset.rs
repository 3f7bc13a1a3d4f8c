//! `$unset` leaves out fields: `$project` with nothing but exclusions.

use espalier_value::{Code, DocBuf, Error, Result, ValueRef};

use super::project::Project;
use super::{Definition, Parse, Parser, Stages, one};
use crate::projection::{Kind, Projection};

pub(super) static UNSET: Definition =
    Definition { name: "$unset", parse: Parse::Stage(parse), doc: "Leaves out fields." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: &str| Err(Error::new(Code(code), message));
    let mut spec = DocBuf::new();
    match argument {
        ValueRef::String(field) => {
            spec.append(field, false);
        }
        ValueRef::Array(fields) if fields.is_empty() => {
            return refuse(31119, "$unset specification must be a string or an array with at least one field");
        }
        ValueRef::Array(fields) => {
            for field in fields.iter() {
                let ValueRef::String(field) = field else {
                    let message = "$unset specification must be a string or an array containing only string values";
                    return refuse(31120, message);
                };
                spec.append(field, false);
            }
        }
        _ => return refuse(31002, "$unset specification must be a string or an array"),
    }
    let projection =
        Projection::parse(spec.as_raw(), parser.scope, Kind::Aggregate).map_err(|e| e.context("Invalid $unset"))?;
    one(Project::new(UNSET.name, projection))
}
