//! Reads a schema document, keyword by keyword.

use espalier_value::number::Number;
use espalier_value::{Elem, Error, RawArray, RawDoc, Result, Type, Value, ValueRef};

use super::{Dependency, Keyword, Others, Rule, Schema, same};
use crate::filter::operator::integer;
use crate::filter::operator::regex::Regex;
use crate::filter::operator::type_::TypeSet;

/// Keywords in the order in which a failing document is told about them.
const ORDER: &[&str] = &[
    "multipleOf",
    "maximum",
    "minimum",
    "pattern",
    "maxLength",
    "minLength",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "dependencies",
    "minItems",
    "maxItems",
    "uniqueItems",
    "items",
    "additionalItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "enum",
];

/// Read together with another keyword, or only checked.
const HELPERS: &[&str] = &[
    "type",
    "bsonType",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "additionalProperties",
    "patternProperties",
    "title",
    "description",
];

const UNSUPPORTED: &[&str] =
    &["$ref", "$schema", "default", "definitions", "format", "id", "encrypt", "encryptMetadata"];

impl Schema {
    /// Parses the schema of a whole document.
    pub fn parse(doc: RawDoc<'_>) -> Result<Schema> {
        schema(doc, true)
    }
}

/// `root`: the value is known to be a document.
fn schema(doc: RawDoc<'_>, root: bool) -> Result<Schema> {
    for elem in doc {
        let name = elem.name();
        if UNSUPPORTED.contains(&name) {
            return Err(Error::failed_to_parse(format!("$jsonSchema keyword '{name}' is not currently supported")));
        }
        if !ORDER.contains(&name) && !HELPERS.contains(&name) {
            return Err(Error::failed_to_parse(format!("Unknown $jsonSchema keyword: {name}")));
        }
    }
    text(doc, "title")?;
    text(doc, "description")?;
    let mut parsed = Schema::default();
    let types = types(doc)?;
    for name in ["minimum", "maximum"] {
        let exclusive = if name == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
        if let (Some(_), None) = (doc.elem(exclusive), doc.elem(name)) {
            return Err(Error::failed_to_parse(format!(
                "$jsonSchema keyword '{name}' must be a present if {exclusive} is present"
            )));
        }
    }
    for name in ORDER {
        if let Some(elem) = doc.elem(name) {
            let about = if root { Some(Type::Document) } else { types.as_ref().and_then(single_type) };
            let says_nothing = about.is_some_and(|ty| !is_about(name, ty));
            parsed.keywords.extend(keyword(name, elem, doc, root, says_nothing)?);
        }
        // Where `properties` stands or would stand.
        if *name == "properties" {
            parsed.keywords.extend(others(doc)?);
        }
    }
    parsed.keywords.extend(types);
    Ok(parsed)
}

fn single_type(keyword: &Keyword) -> Option<Type> {
    match keyword {
        Keyword::Type { types, .. } => types.single(),
        _ => None,
    }
}

/// Whether a keyword can say anything of a value of this type. One that cannot is checked and left out; MongoDB
/// does not even compile its pattern.
fn is_about(name: &str, ty: Type) -> bool {
    match name {
        "multipleOf" | "maximum" | "minimum" => ty.rank() == Type::Double.rank(),
        "pattern" | "maxLength" | "minLength" => ty == Type::String,
        "minItems" | "maxItems" | "uniqueItems" | "items" | "additionalItems" => ty == Type::Array,
        _ => true,
    }
}

fn keyword(name: &str, elem: Elem<'_>, doc: RawDoc<'_>, root: bool, says_nothing: bool) -> Result<Option<Keyword>> {
    let value = elem.value();
    let keyword = match name {
        "allOf" => Keyword::AllOf(schemas(name, value, root)?),
        "anyOf" => Keyword::AnyOf(schemas(name, value, root)?),
        "oneOf" => Keyword::OneOf(schemas(name, value, root)?),
        "not" => match value {
            ValueRef::Document(inner) => Keyword::Not(Box::new(schema(inner, root)?)),
            _ => {
                return Err(wrong(
                    name,
                    &format!("must be an object, but found an element of type {}", type_of(value)),
                ));
            }
        },
        "enum" => Keyword::Enum(choices(value)?),
        "minimum" => Keyword::Minimum { limit: number(name, value)?, exclusive: flag(doc, "exclusiveMinimum")? },
        "maximum" => Keyword::Maximum { limit: number(name, value)?, exclusive: flag(doc, "exclusiveMaximum")? },
        "multipleOf" => {
            let divisor = number(name, value)?;
            let parsed = Number::of(value);
            if parsed.is_some_and(|n| !n.is_nan() && n.compare(Number::Int32(0)).is_le()) {
                return Err(Error::failed_to_parse("$jsonSchema keyword 'multipleOf' must have a positive value"));
            }
            let odd = parsed.filter(|n| n.is_nan() || n.to_f64().is_infinite()).map(Number::is_nan);
            match odd {
                _ if says_nothing => return Ok(None),
                Some(true) => return Err(Error::bad_value("divisor cannot be NaN")),
                Some(false) => return Err(Error::bad_value("divisor cannot be infinite")),
                None => Keyword::MultipleOf(divisor),
            }
        }
        "minLength" => Keyword::MinLength(length(name, value)?),
        "maxLength" => Keyword::MaxLength(length(name, value)?),
        "minItems" => Keyword::MinItems(length(name, value)?),
        "maxItems" => Keyword::MaxItems(length(name, value)?),
        "minProperties" => Keyword::MinProperties(length(name, value)?),
        "maxProperties" => Keyword::MaxProperties(length(name, value)?),
        "pattern" => match value {
            ValueRef::String(_) if says_nothing => return Ok(None),
            ValueRef::String(pattern) => Keyword::Pattern(Regex::new(pattern, "")?),
            _ => return Err(wrong(name, "must be a string")),
        },
        "required" => Keyword::Required(required(value)?),
        "properties" => Keyword::Properties(properties(value)?),
        "dependencies" => Keyword::Dependencies(dependencies(value)?),
        "uniqueItems" => match value {
            ValueRef::Bool(true) => Keyword::UniqueItems,
            ValueRef::Bool(false) => return Ok(None),
            _ => return Err(wrong(name, "must be a boolean")),
        },
        "items" => items(value)?,
        "additionalItems" => match additional_items(value, doc)? {
            Some(keyword) => keyword,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok((!says_nothing).then_some(keyword))
}

fn types(doc: RawDoc<'_>) -> Result<Option<Keyword>> {
    let (name, elem) = match (doc.elem("type"), doc.elem("bsonType")) {
        (None, None) => return Ok(None),
        (Some(elem), None) => ("type", elem),
        (None, Some(elem)) => ("bsonType", elem),
        _ => {
            return Err(Error::failed_to_parse("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'"));
        }
    };
    let json = name == "type";
    let mut types = TypeSet::default();
    match elem.value() {
        ValueRef::String(one) => add_type(&mut types, one, json)?,
        ValueRef::Array(array) => {
            let mut seen: Vec<&str> = Vec::new();
            for value in array.iter() {
                let ValueRef::String(one) = value else {
                    return Err(wrong(name, "array elements must be strings"));
                };
                if seen.contains(&one) {
                    return Err(Error::failed_to_parse(format!(
                        "$jsonSchema keyword '{name}' has duplicate value: {one}"
                    )));
                }
                seen.push(one);
                add_type(&mut types, one, json)?;
            }
            if seen.is_empty() {
                return Err(Error::failed_to_parse(format!(
                    "$jsonSchema keyword '{name}' must name at least one type"
                )));
            }
        }
        _ => return Err(wrong(name, "must be either a string or an array of strings")),
    }
    Ok(Some(Keyword::Type { json, types }))
}

/// JSON Schema's own names, of which `integer` is missing in MongoDB, or BSON's.
fn add_type(types: &mut TypeSet, name: &str, json: bool) -> Result<()> {
    match name {
        _ if !json => types.add_name(name),
        "integer" => Err(Error::failed_to_parse("$jsonSchema type 'integer' is not currently supported.")),
        "number" | "string" | "object" | "array" | "null" => types.add_name(name),
        "boolean" => {
            types.insert(Type::Bool);
            Ok(())
        }
        _ => Err(Error::bad_value(format!("Unknown type name alias: {name}"))),
    }
}

fn schemas(name: &str, value: ValueRef<'_>, root: bool) -> Result<Vec<Schema>> {
    let ValueRef::Array(array) = value else { return Err(wrong(name, "must be an array")) };
    if array.is_empty() {
        return Err(Error::bad_value(format!("$jsonSchema keyword '{name}' must be a non-empty array")));
    }
    array
        .iter()
        .map(|value| match value {
            ValueRef::Document(doc) => schema(doc, root),
            _ => Err(wrong(
                name,
                &format!("must be an array of objects, but found an element of type {}", type_of(value)),
            )),
        })
        .collect()
}

fn choices(value: ValueRef<'_>) -> Result<Vec<Value<'static>>> {
    let array = array("enum", value)?;
    let mut choices: Vec<Value<'static>> = Vec::new();
    for value in array.iter() {
        if choices.iter().any(|other| same(other.or_null(), value)) {
            return Err(Error::failed_to_parse("$jsonSchema keyword 'enum' array cannot contain duplicate values."));
        }
        choices.push(Value::own(value));
    }
    Ok(choices)
}

fn required(value: ValueRef<'_>) -> Result<Vec<Box<str>>> {
    let mut names: Vec<Box<str>> = Vec::new();
    for value in array("required", value)?.iter() {
        let ValueRef::String(name) = value else {
            let found = type_of(value);
            return Err(wrong(
                "required",
                &format!("must be an array of strings, but found an element of type: {found}"),
            ));
        };
        if names.iter().any(|other| **other == *name) {
            return Err(Error::failed_to_parse("$jsonSchema keyword 'required' array cannot contain duplicate values"));
        }
        names.push(name.into());
    }
    Ok(names)
}

/// An array with something in it.
fn array<'a>(name: &str, value: ValueRef<'a>) -> Result<RawArray<'a>> {
    match value {
        ValueRef::Array(array) if array.is_empty() => {
            Err(Error::failed_to_parse(format!("$jsonSchema keyword '{name}' cannot be an empty array")))
        }
        ValueRef::Array(array) => Ok(array),
        _ => Err(wrong(name, &format!("must be an array, but found an element of type {}", type_of(value)))),
    }
}

fn properties(value: ValueRef<'_>) -> Result<Vec<(Box<str>, Schema)>> {
    let ValueRef::Document(doc) = value else { return Err(wrong("properties", "must be an object")) };
    doc.iter()
        .map(|elem| match elem.value() {
            ValueRef::Document(inner) => Ok((elem.name().into(), schema(inner, false)?)),
            _ => Err(Error::type_mismatch(format!(
                "Nested schema for $jsonSchema property '{}' must be an object",
                elem.name()
            ))),
        })
        .collect()
}

fn others(doc: RawDoc<'_>) -> Result<Option<Keyword>> {
    let (patterns, additional) = (doc.get("patternProperties"), doc.get("additionalProperties"));
    if patterns.is_none() && additional.is_none() {
        return Ok(None);
    }
    let patterns = match patterns {
        None => Vec::new(),
        Some(ValueRef::Document(patterns)) => patterns
            .iter()
            .map(|elem| match elem.value() {
                ValueRef::Document(inner) => Ok((pattern(elem.name())?, schema(inner, false)?)),
                _ => {
                    let name = elem.name();
                    Err(wrong("patternProperties", &format!("has property '{name}' which is not an object")))
                }
            })
            .collect::<Result<_>>()?,
        Some(_) => return Err(wrong("patternProperties", "must be an object")),
    };
    let additional = match additional {
        None | Some(ValueRef::Bool(true)) => None,
        Some(ValueRef::Bool(false)) => Some(Rule::Forbidden),
        Some(ValueRef::Document(inner)) => Some(Rule::Schema(schema(inner, false)?)),
        Some(_) => return Err(wrong("additionalProperties", "must be an object or a boolean")),
    };
    let named = match doc.get("properties") {
        Some(ValueRef::Document(properties)) => properties.iter().map(|elem| elem.name().into()).collect(),
        _ => Vec::new(),
    };
    Ok(Some(Keyword::Others(Others { named, patterns, additional })))
}

fn pattern(text: &str) -> Result<Regex> {
    Regex::new(text, "").map_err(|e| {
        Error::bad_value(e.message().replace("Regular expression is invalid", "Invalid regular expression"))
    })
}

fn dependencies(value: ValueRef<'_>) -> Result<Vec<(Box<str>, Dependency)>> {
    let ValueRef::Document(doc) = value else { return Err(wrong("dependencies", "must be an object")) };
    doc.iter()
        .map(|elem| {
            let name = elem.name();
            let dependency = match elem.value() {
                ValueRef::Document(inner) => Dependency::Schema(schema(inner, true)?),
                ValueRef::Array(array) => Dependency::Fields(dependent_fields(name, array)?),
                _ => {
                    return Err(Error::type_mismatch(format!(
                        "property '{name}' in $jsonSchema keyword 'dependencies' must be either an object or an array"
                    )));
                }
            };
            Ok((name.into(), dependency))
        })
        .collect()
}

fn dependent_fields(name: &str, array: RawArray<'_>) -> Result<Vec<Box<str>>> {
    if array.is_empty() {
        return Err(Error::failed_to_parse(format!(
            "property '{name}' in $jsonSchema keyword 'dependencies' cannot be an empty array"
        )));
    }
    let mut fields: Vec<Box<str>> = Vec::new();
    for value in array.iter() {
        let ValueRef::String(field) = value else {
            return Err(Error::type_mismatch(format!(
                "array '{name}' in $jsonSchema keyword 'dependencies' can only contain strings, but found element of \
                 type: {}",
                type_of(value)
            )));
        };
        if fields.iter().any(|other| **other == *field) {
            return Err(Error::failed_to_parse(format!(
                "array '{name}' in $jsonSchema keyword 'dependencies' contains duplicate element: {field}"
            )));
        }
        fields.push(field.into());
    }
    Ok(fields)
}

fn items(value: ValueRef<'_>) -> Result<Keyword> {
    match value {
        ValueRef::Document(doc) => Ok(Keyword::Items(schema(doc, false)?)),
        ValueRef::Array(array) => {
            let list = array.iter().map(|value| match value {
                ValueRef::Document(doc) => schema(doc, false),
                _ => Err(wrong(
                    "items",
                    &format!("requires that each element of the array is an object, but found a {}", type_of(value)),
                )),
            });
            Ok(Keyword::ItemList(list.collect::<Result<_>>()?))
        }
        _ => Err(wrong("items", &format!("must be an array or an object, not {}", type_of(value)))),
    }
}

/// Says something only after a list of `items`.
fn additional_items(value: ValueRef<'_>, doc: RawDoc<'_>) -> Result<Option<Keyword>> {
    let rule = match value {
        ValueRef::Bool(true) => None,
        ValueRef::Bool(false) => Some(Rule::Forbidden),
        ValueRef::Document(inner) => Some(Rule::Schema(schema(inner, false)?)),
        _ => {
            let found = type_of(value);
            return Err(wrong("additionalItems", &format!("must be either an object or a boolean, but got a {found}")));
        }
    };
    Ok(match (rule, doc.get("items")) {
        (Some(rule), Some(ValueRef::Array(list))) => Some(Keyword::AdditionalItems { from: list.len(), rule }),
        _ => None,
    })
}

fn number(name: &str, value: ValueRef<'_>) -> Result<Value<'static>> {
    if value.is_number() { Ok(Value::own(value)) } else { Err(wrong(name, "must be a number")) }
}

fn length(name: &str, value: ValueRef<'_>) -> Result<i64> {
    integer::non_negative(name, value).map_err(Error::failed_to_parse)
}

fn flag(doc: RawDoc<'_>, name: &str) -> Result<bool> {
    match doc.get(name) {
        None => Ok(false),
        Some(ValueRef::Bool(flag)) => Ok(flag),
        Some(_) => Err(wrong(name, "must be a boolean")),
    }
}

/// `title` and `description` are repeated where the schema fails; until then they are only checked.
fn text(doc: RawDoc<'_>, name: &str) -> Result<()> {
    match doc.get(name) {
        None | Some(ValueRef::String(_)) => Ok(()),
        Some(_) => Err(wrong(name, "must be of type string")),
    }
}

fn wrong(name: &str, what: &str) -> Error {
    Error::type_mismatch(format!("$jsonSchema keyword '{name}' {what}"))
}

fn type_of(value: ValueRef<'_>) -> &'static str {
    value.ty().name()
}
