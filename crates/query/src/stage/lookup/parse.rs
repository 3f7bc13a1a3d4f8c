//! Reading the specification of `$lookup`.

use std::sync::Arc;

use espalier_value::{Code, Error, RawArray, RawDoc, Result, ValueRef};

use super::{Join, Lookup, Spec};
use crate::expression::{Expression, field_path, validate_name_to_define};
use crate::stage::sub_pipeline::{SubPipeline, is_free_of, is_random, refuse_writes};
use crate::stage::{Parser, Stages, one};

pub(super) fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |message: String| Err(Error::failed_to_parse(message));
    let ValueRef::Document(spec) = argument else {
        let found = argument.ty().name();
        return refuse(format!("the $lookup stage specification must be an object, but found {found}"));
    };
    let (mut from, mut local, mut foreign, mut output) = (None, None, None, None);
    let (mut stages, mut lets) = (None, None);
    for elem in spec {
        let (name, value) = (elem.name(), elem.value());
        match (name, value) {
            ("pipeline", ValueRef::Array(array)) => {
                if array.iter().any(|stage| stage.as_doc().is_none()) {
                    return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
                }
                stages = Some(array);
            }
            ("pipeline", _) => return Err(Error::type_mismatch("'pipeline' option must be specified as an array")),
            ("let", ValueRef::Document(doc)) => lets = Some(doc),
            ("let", _) => {
                let found = value.ty().name();
                return refuse(format!("$lookup argument 'let: {value}' must be an object, is type {found}"));
            }
            ("from", ValueRef::Document(other)) => {
                let part = |name| other.get_str(name).unwrap_or_default();
                return refuse(format!(
                    "$lookup with syntax {{from: {{db:<>, coll:<>}},..}} is not supported for db: {} and coll: {}",
                    part("db"),
                    part("coll")
                ));
            }
            ("from", ValueRef::String(text)) => from = Some(text),
            ("localField", ValueRef::String(text)) => local = Some(text),
            ("foreignField", ValueRef::String(text)) => foreign = Some(text),
            ("as", ValueRef::String(text)) => output = Some(text),
            (_, ValueRef::String(_)) => return refuse(format!("unknown argument to $lookup: {name}")),
            _ => {
                let found = value.ty().name();
                return refuse(format!("$lookup argument '{name}' must be a string, found {name}: {value}: {found}"));
            }
        }
    }
    let output = output.filter(|text| !text.is_empty());
    let (local, foreign) = (local.filter(|text| !text.is_empty()), foreign.filter(|text| !text.is_empty()));
    if from.is_none() && stages.is_none() {
        return refuse("must specify 'pipeline' when 'from' is empty".into());
    }
    let Some(output) = output else {
        return refuse("must specify 'as' field for a $lookup".into());
    };
    if from == Some("") {
        return Err(Error::new(Code::InvalidNamespace, "invalid $lookup namespace: the collection has no name"));
    }
    let equality = match (local, foreign) {
        (Some(local), Some(foreign)) => Some((field_path::parse(local)?, field_path::parse(foreign)?)),
        (None, None) if stages.is_some() => None,
        _ => {
            let message = "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified";
            return refuse(message.into());
        }
    };
    if lets.is_some() && stages.is_none() {
        return refuse("$lookup with a 'let' argument must also specify 'pipeline'".into());
    }
    let as_path = field_path::parse(output)?;
    let stages = stages.unwrap_or(RawArray::of(RawDoc::EMPTY));
    refuse_writes(stages, 51047, "$lookup")?;
    let lets = parse_lets(lets.unwrap_or(RawDoc::EMPTY), parser)?;
    let scope = parser.scope.apart().with_lets(lets.iter().map(|(name, _)| &**name));
    let other = SubPipeline::parse(from, stages, scope, parser, "$lookup")?;
    let names: Vec<&str> = lets.iter().map(|(name, _)| &**name).collect();
    let constant = equality.is_none()
        && !is_random(ValueRef::Array(stages))
        && is_free_of(stages, &names, other.scope(), parser.context, parser.depth + 1);
    let join = match equality {
        None if !constant && from.is_some() => Join::find(stages, other.scope()),
        _ => None,
    };
    let whole = stages.is_empty();
    let early = other.early();
    let in_place = !whole || equality.is_none();
    let spec = Spec { as_path, equality, lets, other, whole, constant, join, early };
    one(Lookup { spec: Arc::new(spec), unwind: None, in_place })
}

fn parse_lets(spec: RawDoc<'_>, parser: &Parser<'_>) -> Result<Vec<(Box<str>, Expression)>> {
    let mut lets = Vec::new();
    for elem in spec {
        validate_name_to_define(elem.name())?;
        lets.push((elem.name().into(), Expression::parse(elem.value(), &parser.scope.apart())?));
    }
    Ok(lets)
}
