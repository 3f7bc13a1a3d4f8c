//! `$fill` fills null and missing values: with an expression, the last value, or on a line between neighbours.
//!
//! Short for `$setWindowFields` with `$locf` and `$linearFill`, followed by `$addFields` for the expressions.

use espalier_value::{Code, DocBuf, Error, RawArray, Result, ValueRef, doc};

use super::{Definition, Parse, Parser, Stages, add_fields, set_window_fields};
use crate::expression::Expression;
use crate::sort::Sort;

pub(super) static FILL: Definition =
    Definition { name: "$fill", parse: Parse::Stage(parse), doc: "Fills null and missing values." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let ValueRef::Document(spec) = argument else {
        let message = format!("The $fill stage specification must be an object, found {}", argument.ty().name());
        return Err(Error::failed_to_parse(message));
    };
    let (mut partition_by, mut sort_by, mut output) = (None, None, None);
    let mut fields: Option<DocBuf> = None;
    for elem in spec {
        match (elem.name(), elem.value()) {
            ("partitionBy", ValueRef::Document(by)) => partition_by = Some(by),
            ("partitionByFields", ValueRef::Array(names)) => fields = Some(by_fields(names)?),
            ("sortBy", ValueRef::Document(by)) => sort_by = Some(by),
            ("output", ValueRef::Document(given)) => output = Some(given),
            (name @ ("partitionBy" | "sortBy" | "output"), value) => return Err(wrong_type(name, value, "object")),
            ("partitionByFields", value) => return Err(wrong_type("partitionByFields", value, "array")),
            (other, _) => return refuse(40415, format!("BSON field '$fill.{other}' is an unknown field.")),
        }
    }
    let Some(output) = output else {
        return refuse(40414, "BSON field '$fill.output' is missing but a required field".into());
    };
    if partition_by.is_some() && fields.is_some() {
        return refuse(
            6050204,
            "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'".into(),
        );
    }
    if output.is_empty() {
        let message = "The output field in '$fill' must contain an object with at least one element";
        return refuse(6050203, message.into());
    }
    let (mut windows, mut values) = (DocBuf::new(), DocBuf::new());
    for elem in output {
        fill_of(elem.name(), elem.value(), &mut windows, &mut values)?;
    }
    let mut stages = Stages::new();
    if !windows.is_empty() {
        let by = partition_by.or(fields.as_ref().filter(|fields| !fields.is_empty()).map(DocBuf::as_raw));
        let by = by.map(|by| Expression::parse(by.into(), parser.scope)).transpose()?;
        let sort = sort_by.map(|by| Sort::parse(by, parser.scope)).transpose()?.flatten();
        stages.extend(set_window_fields::stages(by, sort, windows.as_raw(), parser)?);
    }
    if !values.is_empty() {
        stages.extend(add_fields::parse_as("$addFields", (&values).into(), parser)?);
    }
    Ok(stages)
}

/// Adds what fills a field to the output of one of the two stages.
fn fill_of(field: &str, spec: ValueRef<'_>, windows: &mut DocBuf, values: &mut DocBuf) -> Result<()> {
    let refuse = |code, message: &str| Err(Error::new(Code(code), message));
    let ValueRef::Document(spec) = spec else {
        return refuse(6050200, "Each fill output specification must be an object with exactly one field");
    };
    let (mut method, mut value) = (None, None);
    for elem in spec {
        match (elem.name(), elem.value()) {
            ("method", ValueRef::String(name)) => method = Some(name),
            ("method", other) => return Err(wrong_type("method", other, "string")),
            ("value", given) => value = Some(given),
            (other, _) => return refuse(40415, &format!("BSON field '$fill.{other}' is an unknown field.")),
        }
    }
    let path = format!("${field}");
    match (method, value) {
        (Some(_), Some(_)) => {
            let message =
                "Each fill output specification must have exactly one of 'method' or 'value' fields, not both";
            return refuse(6050201, message);
        }
        (Some("locf"), None) => windows.append(field, &doc! { "$locf": &path }),
        (Some("linear"), None) => windows.append(field, &doc! { "$linearFill": &path }),
        (Some(_), None) => return refuse(6050202, "Method must be either locf or linear"),
        (None, Some(value)) => values.append_doc(field, |fill| {
            fill.append_array("$ifNull", |operands| {
                operands.push(path.as_str()).push(value);
            });
        }),
        (None, None) => values,
    };
    Ok(())
}

/// The object that has the fields as its own: one partition for each combination.
fn by_fields(names: RawArray<'_>) -> Result<DocBuf> {
    let mut by = DocBuf::new();
    for (at, name) in names.iter().enumerate() {
        let ValueRef::String(name) = name else {
            return Err(wrong_type(&format!("partitionByFields.{at}"), name, "string"));
        };
        if by.as_raw().elem(name).is_none() {
            by.append(name, &format!("${name}"));
        }
    }
    Ok(by)
}

fn wrong_type(field: &str, found: ValueRef<'_>, expected: &str) -> Error {
    let found = found.ty().name();
    Error::type_mismatch(format!("BSON field '$fill.{field}' is the wrong type '{found}', expected type '{expected}'"))
}
