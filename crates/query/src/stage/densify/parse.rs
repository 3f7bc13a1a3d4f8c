//! Parsing `{field, partitionByFields, range: {step, unit, bounds}}`.

use espalier_value::number::Number;
use espalier_value::{Code, Error, Path, RawArray, RawDoc, Result, ValueRef, compare};

use super::step::{Scalar, Step};
use super::{Bounds, stages};
use crate::expression::{TimeUnit, field_path};
use crate::stage::{Parser, Stages};

fn refuse<T>(code: i32, message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code(code), message.into()))
}

fn wrong_type(field: &str, found: ValueRef<'_>, expected: &str) -> Error {
    let found = found.ty().name();
    let message = format!("BSON field '$densify.{field}' is the wrong type '{found}', expected type '{expected}'");
    Error::type_mismatch(message)
}

fn required<T>(given: Option<T>, field: &str) -> Result<T> {
    given.map_or_else(|| refuse(40414, format!("BSON field '$densify.{field}' is missing but a required field")), Ok)
}

pub(super) fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let ValueRef::Document(spec) = argument else {
        let message = format!("The $densify stage specification must be an object, found {}", argument.ty().name());
        return Err(Error::failed_to_parse(message));
    };
    let (mut field, mut range, mut partition_by) = (None, None, Vec::new());
    for elem in spec {
        match (elem.name(), elem.value()) {
            ("field", ValueRef::String(name)) => field = Some(name),
            ("field", other) => return Err(wrong_type("field", other, "string")),
            ("range", ValueRef::Document(given)) => range = Some(given),
            ("range", other) => return Err(wrong_type("range", other, "object")),
            ("partitionByFields", ValueRef::Array(names)) => partition_by = paths(names)?,
            ("partitionByFields", ValueRef::Null) => {
                return refuse(10065, "invalid parameter: expected an object (partitionByFields)");
            }
            ("partitionByFields", other) => return Err(wrong_type("partitionByFields", other, "array")),
            (other, _) => return refuse(40415, format!("BSON field '$densify.{other}' is an unknown field.")),
        }
    }
    let field = required(field, "field")?;
    let (step, bounds) = parse_range(required(range, "range")?)?;
    if bounds == Bounds::Partition && partition_by.is_empty() {
        return refuse(
            5733408,
            "One cannot specify the bounds as 'partition' without specifying a non-empty array of partitionByFields. \
             You may have meant to specify 'full' bounds.",
        );
    }
    stages(field_path::parse(field)?, partition_by, step, bounds, parser.scope)
}

fn paths(names: RawArray<'_>) -> Result<Vec<Path>> {
    let mut paths: Vec<Path> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let ValueRef::String(name) = name else {
            return Err(wrong_type(&format!("partitionByFields.{at}"), name, "string"));
        };
        if !paths.iter().any(|path| path.as_str() == name) {
            paths.push(field_path::parse(name)?);
        }
    }
    Ok(paths)
}

fn parse_range(range: RawDoc<'_>) -> Result<(Step, Bounds)> {
    let (mut step, mut unit, mut bounds) = (None, None, None);
    for elem in range {
        match (elem.name(), elem.value()) {
            // Null counts as not given.
            ("step" | "unit", ValueRef::Null) => {}
            ("step", value) => match Number::of(value) {
                Some(number) => step = Some(number),
                None => return Err(wrong_type("range.step", value, "[int, decimal, double, long]")),
            },
            ("unit", ValueRef::String(name)) => match TimeUnit::parse(name) {
                Some(parsed) => unit = Some(parsed),
                None => return Err(Error::failed_to_parse(format!("unknown time unit value: {name}"))),
            },
            ("unit", other) => return Err(wrong_type("range.unit", other, "string")),
            ("bounds", value) => bounds = Some(value),
            (other, _) => return refuse(40415, format!("BSON field '$densify.range.{other}' is an unknown field.")),
        }
    }
    let amount = required(step, "range.step")?;
    let bounds = required(bounds, "range.bounds")?;
    if !amount.compare(Number::Int32(0)).is_gt() {
        return refuse(5733401, "The step parameter in a range statement must be a strictly positive numeric value");
    }
    if unit.is_some() && amount.as_exact_i64().is_none() {
        let message = "The step parameter in a range statement must be a whole number when densifying a date range";
        return refuse(6586400, message);
    }
    let step = Step { amount, unit };
    Ok((step, parse_bounds(bounds, step)?))
}

fn parse_bounds(bounds: ValueRef<'_>, step: Step) -> Result<Bounds> {
    let array = match bounds {
        ValueRef::String("full") => return Ok(Bounds::Full),
        ValueRef::String("partition") => return Ok(Bounds::Partition),
        ValueRef::String(_) => return refuse(5946802, "Bounds string must either be 'full' or 'partition'"),
        ValueRef::Array(array) => array,
        _ => {
            return refuse(
                5733404,
                "The bounds in a range statement must be the string 'full', 'partition', or an ascending array of two \
                 numbers or two dates",
            );
        }
    };
    let mut elements = array.iter();
    let (Some(lower), Some(upper), None) = (elements.next(), elements.next(), elements.next()) else {
        return refuse(5733403, "A bounding array in a range statement must have exactly two elements");
    };
    if compare(lower, upper).is_gt() {
        return refuse(5733402, "A bounding array must be an ascending array of either two dates or two numbers");
    }
    let same_type = |number: Number| {
        let ty = number.to_value().ty();
        ty == lower.ty() && ty == upper.ty()
    };
    match (Scalar::of(lower), Scalar::of(upper)) {
        (Some(Scalar::Number(_)), Some(Scalar::Number(_))) if step.unit.is_some() => {
            refuse(5733409, "Numeric bounds may not have unit parameter")
        }
        (Some(from @ Scalar::Number(_)), Some(to @ Scalar::Number(_))) if same_type(step.amount) => {
            Ok(Bounds::Range(from, to))
        }
        (Some(Scalar::Number(_)), Some(Scalar::Number(_))) => {
            refuse(5876900, "Upper bound, lower bound, and step must all have the same type")
        }
        (Some(Scalar::Date(_)), Some(Scalar::Date(_))) if step.unit.is_none() => {
            refuse(5733410, "A bounding array of dates must specify a unit")
        }
        (Some(from @ Scalar::Date(_)), Some(to @ Scalar::Date(_))) => Ok(Bounds::Range(from, to)),
        (Some(_), _) => refuse(5733406, "A bounding array must contain either both dates or both numeric types"),
        (None, _) => refuse(5946800, "Explicit bounds must be numeric or dates"),
    }
}
