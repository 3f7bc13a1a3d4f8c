//! `$merge` writes the results into a collection, each beside, over or into the document that is there.

use std::sync::Arc;

use espalier_value::{Code, Error, Path, RawDoc, Result, ValueRef};

use super::output::{Merge, MergePipeline, Output, Target, WhenMatched, WhenNotMatched};
use super::{Definition, Parse, Parser, Run, Stage, Stages, one};
use crate::expression::{Deps, Expression, field_path, validate_name_to_define};
use crate::stream::Stream;
use crate::update::Update;

pub(super) static MERGE: Definition = Definition {
    name: "$merge",
    parse: Parse::Stage(parse),
    doc: "Writes the results into a collection, document by document.",
};

#[derive(Debug)]
struct MergeStage {
    output: Output,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let (mut into, mut on, mut lets, mut matched, mut not_matched) = (None, None, None, None, None);
    match argument {
        ValueRef::String(collection) => {
            into = Some(Target { db: None, collection: collection.into() });
        }
        ValueRef::Document(spec) => {
            for elem in spec {
                let value = elem.value();
                match elem.name() {
                    "into" => into = Some(parse_into(value)?),
                    "on" => on = Some(parse_on(value)?),
                    "let" => match value {
                        ValueRef::Document(doc) => lets = Some(doc),
                        other => return Err(wrong_type("let", "object", other)),
                    },
                    "whenMatched" => matched = Some(value),
                    "whenNotMatched" => not_matched = Some(parse_not_matched(value)?),
                    other => {
                        let message = format!("BSON field '$merge.{other}' is an unknown field.");
                        return Err(Error::new(Code(40415), message));
                    }
                }
            }
        }
        other => {
            let found = other.ty().name();
            let message = format!("$merge requires a string or object argument, but found {found}");
            return Err(Error::type_mismatch(message));
        }
    }
    let Some(into) = into else {
        return Err(Error::new(Code(40414), "BSON field '$merge.into' is missing but a required field"));
    };
    let not_matched = not_matched.unwrap_or(WhenNotMatched::Insert);
    let matched = parse_matched(matched, lets, parser)?;
    check_modes(&matched, not_matched)?;
    check_target(&into)?;
    one(MergeStage { output: Output::Merge(Merge { into, on, when_matched: matched, when_not_matched: not_matched }) })
}

fn wrong_type(field: &str, expected: &str, found: ValueRef<'_>) -> Error {
    let found = found.ty().name();
    Error::type_mismatch(format!("BSON field '$merge.{field}' is the wrong type '{found}', expected type '{expected}'"))
}

fn parse_into(value: ValueRef<'_>) -> Result<Target> {
    match value {
        ValueRef::String("") => Err(Error::new(Code(5_786_800), "$merge 'into' field cannot be an empty string")),
        ValueRef::String(collection) => Ok(Target { db: None, collection: collection.into() }),
        ValueRef::Document(spec) => {
            let (mut db, mut collection) = (None, None);
            for elem in spec {
                match (elem.name(), elem.value()) {
                    ("db", ValueRef::String(text)) => db = Some(text).filter(|text| !text.is_empty()),
                    ("coll", ValueRef::String(text)) => collection = Some(text).filter(|text| !text.is_empty()),
                    ("db" | "coll", other) if other.is_nullish() => {}
                    ("db" | "coll", other) => {
                        let (name, found) = (elem.name(), other.ty().name());
                        return Err(Error::type_mismatch(format!(
                            "BSON field 'into.{name}' is the wrong type '{found}', expected type 'string'"
                        )));
                    }
                    (other, _) => {
                        let message = format!("BSON field 'into.{other}' is an unknown field.");
                        return Err(Error::new(Code(40415), message));
                    }
                }
            }
            let Some(collection) = collection else {
                let message = "$merge 'into' field must specify a 'coll' that is not empty, null or undefined";
                return Err(Error::new(Code(5_786_801), message));
            };
            Ok(Target { db: db.map(Into::into), collection: collection.into() })
        }
        other => {
            let found = other.ty().name();
            let message = format!("$merge 'into' field  must be either a string or an object, but found {found}");
            Err(Error::new(Code(51178), message))
        }
    }
}

fn parse_on(value: ValueRef<'_>) -> Result<Vec<Path>> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    match value {
        ValueRef::String(text) => Ok(vec![field_path::parse(text)?]),
        ValueRef::Array(array) if array.is_empty() => {
            refuse(51187, "If explicitly specifying $merge 'on', must include at least one field".into())
        }
        ValueRef::Array(array) => {
            let mut paths: Vec<Path> = Vec::new();
            for value in array.iter() {
                let ValueRef::String(text) = value else {
                    let found = value.ty().name();
                    return refuse(51134, format!("$merge 'on' array elements must be strings, but found {found}"));
                };
                if paths.iter().any(|path| path.as_str() == text) {
                    return refuse(31465, format!("Found a duplicate field '{text}'"));
                }
                paths.push(field_path::parse(text)?);
            }
            Ok(paths)
        }
        other => {
            let found = other.ty().name();
            let what = "$merge 'on' field  must be either a string or an array of strings";
            refuse(51186, format!("{what}, but found {found}"))
        }
    }
}

fn parse_not_matched(value: ValueRef<'_>) -> Result<WhenNotMatched> {
    match value {
        ValueRef::String("insert") => Ok(WhenNotMatched::Insert),
        ValueRef::String("discard") => Ok(WhenNotMatched::Discard),
        ValueRef::String("fail") => Ok(WhenNotMatched::Fail),
        ValueRef::String(other) => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field '$merge.whenNotMatched' is not a valid value."
        ))),
        other => Err(wrong_type("whenNotMatched", "string", other)),
    }
}

fn parse_matched(value: Option<ValueRef<'_>>, lets: Option<RawDoc<'_>>, parser: &Parser<'_>) -> Result<WhenMatched> {
    let (name, mode) = match value {
        None | Some(ValueRef::String("merge")) => ("merge", WhenMatched::Merge),
        Some(ValueRef::String("replace")) => ("replace", WhenMatched::Replace),
        Some(ValueRef::String("keepExisting")) => ("keepExisting", WhenMatched::KeepExisting),
        Some(ValueRef::String("fail")) => ("fail", WhenMatched::Fail),
        Some(ValueRef::String(other)) => {
            let message = format!("Enumeration value '{other}' for field 'whenMatched' is not a valid value.");
            return Err(Error::bad_value(message));
        }
        Some(stages @ ValueRef::Array(_)) => return parse_pipeline(stages, lets.unwrap_or(RawDoc::EMPTY), parser),
        Some(other) => {
            let found = other.ty().name();
            let what = "$merge 'whenMatched' field  must be either a string or an array";
            return Err(Error::new(Code(51191), format!("{what}, but found {found}")));
        }
    };
    if lets.is_some() {
        let message = format!("Cannot use 'let' variables with 'whenMatched: {name}' mode");
        return Err(Error::new(Code(51199), message));
    }
    Ok(mode)
}

fn parse_pipeline(stages: ValueRef<'_>, spec: RawDoc<'_>, parser: &Parser<'_>) -> Result<WhenMatched> {
    let root = |scope| Expression::parse(ValueRef::String("$$ROOT"), scope);
    let mut lets = vec![("new".into(), root(parser.scope)?)];
    for elem in spec {
        validate_name_to_define(elem.name())?;
        if elem.name() == "new" {
            if elem.value().as_str() != Some("$$ROOT") {
                let what = "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'";
                return Err(Error::new(Code(51273), what));
            }
            continue;
        }
        lets.push((elem.name().into(), Expression::parse(elem.value(), parser.scope)?));
    }
    let scope = parser.scope.with_lets(lets.iter().map(|(name, _): &(Box<str>, Expression)| &**name));
    let update = Arc::new(Update::parse(stages, &[], &scope)?);
    Ok(WhenMatched::Pipeline(MergePipeline { update, lets }))
}

/// Modes that would do nothing whatever is found, or say the same twice, are not offered.
fn check_modes(matched: &WhenMatched, not_matched: WhenNotMatched) -> Result<()> {
    let name = match matched {
        WhenMatched::KeepExisting => "keepExisting",
        WhenMatched::Fail => "fail",
        _ => return Ok(()),
    };
    let other = match not_matched {
        WhenNotMatched::Insert => return Ok(()),
        WhenNotMatched::Discard => "discard",
        WhenNotMatched::Fail => "fail",
    };
    let message =
        format!("Combination of $merge modes 'whenMatched: {name}' and 'whenNotMatched: {other}' is not supported");
    Err(Error::new(Code(51181), message))
}

fn check_target(into: &Target) -> Result<()> {
    if into.collection.is_empty() {
        return Err(Error::new(Code::InvalidNamespace, "Invalid $merge target namespace: it has no collection"));
    }
    if let Some(db @ ("admin" | "config" | "local")) = into.db.as_deref() {
        return Err(Error::new(Code(31320), format!("Cannot $merge to internal database: {db}")));
    }
    if into.collection.starts_with("system.") {
        let message = format!("Cannot $merge to special collection: {}", into.collection);
        return Err(Error::new(Code(31319), message));
    }
    Ok(())
}

impl Stage for MergeStage {
    fn name(&self) -> &'static str {
        MERGE.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, _run: &Run) -> Result<Box<dyn Stream>> {
        Ok(input)
    }

    fn needs(&self, _after: &Deps) -> Deps {
        Deps::whole()
    }

    fn writes(&self) -> bool {
        true
    }

    fn output(&self) -> Option<&Output> {
        Some(&self.output)
    }
}
