//! JSON Schema (draft 4 with MongoDB's `bsonType`), parsed once. A keyword says something only about values of the
//! types it is for; a value of another type passes it.

use std::cmp::Ordering;

use espalier_value::number::Number;
use espalier_value::{Collator, RawDoc, Result, Value, ValueRef, compare};

use super::operator::comparison::{self, Op};
use super::operator::regex::Regex;
use super::operator::type_::TypeSet;

pub(crate) mod explain;
mod parse;

/// A schema: all its keywords hold. They stand in the order in which MongoDB reports them.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    pub keywords: Vec<Keyword>,
}

#[derive(Debug)]
pub(crate) enum Keyword {
    /// `type` or `bsonType`.
    Type {
        json: bool,
        types: TypeSet,
    },
    Enum(Vec<Value<'static>>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Box<Schema>),
    // Numbers.
    Minimum {
        limit: Value<'static>,
        exclusive: bool,
    },
    Maximum {
        limit: Value<'static>,
        exclusive: bool,
    },
    MultipleOf(Value<'static>),
    // Strings.
    MinLength(i64),
    MaxLength(i64),
    Pattern(Regex),
    // Documents.
    Required(Vec<Box<str>>),
    Properties(Vec<(Box<str>, Schema)>),
    /// `patternProperties` and `additionalProperties`: the fields that `properties` does not name.
    Others(Others),
    MinProperties(i64),
    MaxProperties(i64),
    Dependencies(Vec<(Box<str>, Dependency)>),
    // Arrays.
    Items(Schema),
    /// `items` with a list: a schema for each of the first elements.
    ItemList(Vec<Schema>),
    /// `additionalItems`, and where it begins.
    AdditionalItems {
        from: usize,
        rule: Rule,
    },
    MinItems(i64),
    MaxItems(i64),
    UniqueItems,
}

/// What else a document may hold.
#[derive(Debug)]
pub(crate) struct Others {
    pub named: Vec<Box<str>>,
    pub patterns: Vec<(Regex, Schema)>,
    pub additional: Option<Rule>,
}

/// A schema, or plain no.
#[derive(Debug)]
pub(crate) enum Rule {
    Forbidden,
    Schema(Schema),
}

#[derive(Debug)]
pub(crate) enum Dependency {
    Fields(Vec<Box<str>>),
    Schema(Schema),
}

impl Schema {
    pub fn matches_document(&self, doc: RawDoc<'_>) -> Result<bool> {
        self.matches(ValueRef::Document(doc))
    }

    pub fn matches(&self, value: ValueRef<'_>) -> Result<bool> {
        for keyword in &self.keywords {
            if !keyword.matches(value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Keyword {
    pub fn matches(&self, value: ValueRef<'_>) -> Result<bool> {
        Ok(match self {
            Keyword::Type { types, .. } => types.contains(value),
            Keyword::Enum(values) => values.iter().any(|wanted| same(value, wanted.or_null())),
            Keyword::AllOf(schemas) => {
                for schema in schemas {
                    if !schema.matches(value)? {
                        return Ok(false);
                    }
                }
                true
            }
            Keyword::AnyOf(schemas) => count(schemas, value, 1)? > 0,
            Keyword::OneOf(schemas) => count(schemas, value, 2)? == 1,
            Keyword::Not(schema) => !schema.matches(value)?,
            Keyword::Minimum { .. } | Keyword::Maximum { .. } | Keyword::MultipleOf(_) => {
                !value.is_number() || self.matches_number(value)
            }
            Keyword::MinLength(min) => value.as_str().is_none_or(|s| length(s) >= *min),
            Keyword::MaxLength(max) => value.as_str().is_none_or(|s| length(s) <= *max),
            Keyword::Pattern(regex) => match value {
                ValueRef::String(s) => regex.is_match(s)?,
                _ => true,
            },
            Keyword::Items(_)
            | Keyword::ItemList(_)
            | Keyword::AdditionalItems { .. }
            | Keyword::MinItems(_)
            | Keyword::MaxItems(_)
            | Keyword::UniqueItems => match value {
                ValueRef::Array(array) => self.matches_array(array)?,
                _ => true,
            },
            _ => match value {
                ValueRef::Document(doc) => self.matches_object(doc)?,
                _ => true,
            },
        })
    }

    fn matches_number(&self, value: ValueRef<'_>) -> bool {
        match self {
            Keyword::Minimum { limit, exclusive } => comparison::matches(
                if *exclusive { Op::Gt } else { Op::Gte },
                Some(value),
                limit.or_null(),
                Collator::SIMPLE,
            ),
            Keyword::Maximum { limit, exclusive } => comparison::matches(
                if *exclusive { Op::Lt } else { Op::Lte },
                Some(value),
                limit.or_null(),
                Collator::SIMPLE,
            ),
            Keyword::MultipleOf(divisor) => match (Number::of(value), Number::of(divisor.or_null())) {
                (Some(number), Some(divisor)) => is_multiple(number, divisor),
                _ => false,
            },
            _ => true,
        }
    }

    fn matches_object(&self, doc: RawDoc<'_>) -> Result<bool> {
        Ok(match self {
            Keyword::Required(names) => names.iter().all(|name| has_path(doc, name)),
            Keyword::Properties(properties) => {
                for (name, schema) in properties {
                    if let Some(value) = doc.get(name)
                        && !schema.matches(value)?
                    {
                        return Ok(false);
                    }
                }
                true
            }
            Keyword::Others(others) => {
                for elem in doc {
                    if !others.accepts(elem.name(), elem.value())? {
                        return Ok(false);
                    }
                }
                true
            }
            Keyword::MinProperties(min) => at_least(doc.count(), *min),
            Keyword::MaxProperties(max) => !at_least(doc.count(), max.saturating_add(1)),
            Keyword::Dependencies(dependencies) => {
                for (name, dependency) in dependencies {
                    if doc.elem(name).is_some() && !dependency.matches(doc)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => true,
        })
    }

    fn matches_array(&self, array: espalier_value::RawArray<'_>) -> Result<bool> {
        Ok(match self {
            Keyword::Items(schema) => {
                for value in array.iter() {
                    if !schema.matches(value)? {
                        return Ok(false);
                    }
                }
                true
            }
            Keyword::ItemList(schemas) => {
                for (schema, value) in schemas.iter().zip(array.iter()) {
                    if !schema.matches(value)? {
                        return Ok(false);
                    }
                }
                true
            }
            Keyword::AdditionalItems { from, rule } => {
                for value in array.iter().skip(*from) {
                    if !rule.matches(value)? {
                        return Ok(false);
                    }
                }
                true
            }
            Keyword::MinItems(min) => at_least(array.len(), *min),
            Keyword::MaxItems(max) => !at_least(array.len(), max.saturating_add(1)),
            Keyword::UniqueItems => duplicate(array).is_none(),
            _ => true,
        })
    }
}

impl Rule {
    pub fn matches(&self, value: ValueRef<'_>) -> Result<bool> {
        match self {
            Rule::Forbidden => Ok(false),
            Rule::Schema(schema) => schema.matches(value),
        }
    }
}

impl Dependency {
    pub fn matches(&self, doc: RawDoc<'_>) -> Result<bool> {
        match self {
            Dependency::Fields(names) => Ok(names.iter().all(|name| doc.elem(name).is_some())),
            Dependency::Schema(schema) => schema.matches(ValueRef::Document(doc)),
        }
    }
}

impl Others {
    fn accepts(&self, name: &str, value: ValueRef<'_>) -> Result<bool> {
        for (regex, schema) in &self.patterns {
            if regex.is_match(name)? && !schema.matches(value)? {
                return Ok(false);
            }
        }
        Ok(!self.is_additional(name)? || self.additional.as_ref().map_or(Ok(true), |rule| rule.matches(value))?)
    }

    /// Neither named by `properties` nor by a pattern.
    fn is_additional(&self, name: &str) -> Result<bool> {
        if self.named.iter().any(|named| **named == *name) {
            return Ok(false);
        }
        for (regex, _) in &self.patterns {
            if regex.is_match(name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// How many of the schemas match, up to `enough`.
fn count(schemas: &[Schema], value: ValueRef<'_>, enough: usize) -> Result<usize> {
    let mut matching = 0;
    for schema in schemas {
        matching += usize::from(schema.matches(value)?);
        if matching == enough {
            break;
        }
    }
    Ok(matching)
}

fn at_least(count: usize, limit: i64) -> bool {
    i64::try_from(count).unwrap_or(i64::MAX) >= limit
}

/// In characters, not bytes.
fn length(s: &str) -> i64 {
    i64::try_from(s.chars().count()).unwrap_or(i64::MAX)
}

fn is_multiple(number: Number, divisor: Number) -> bool {
    match (number.as_exact_i64(), divisor.as_exact_i64()) {
        (Some(n), Some(d)) => n.checked_rem(d) == Some(0),
        // In decimal, so that 0.3 is a multiple of 0.1.
        _ => {
            let rest = number.to_decimal().rem(divisor.to_decimal());
            !rest.is_nan() && Number::Decimal(rest).is_zero()
        }
    }
}

/// Equality to which the order of fields is nothing.
pub(crate) fn same(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Document(x), ValueRef::Document(y)) => {
            x.count() == y.count() && x.iter().all(|e| y.get(e.name()).is_some_and(|v| same(e.value(), v)))
        }
        (ValueRef::Array(x), ValueRef::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y.iter()).all(|(v, w)| same(v, w))
        }
        _ => compare(a, b) == Ordering::Equal,
    }
}

/// The first element that stands in the array a second time.
pub(crate) fn duplicate(array: espalier_value::RawArray<'_>) -> Option<ValueRef<'_>> {
    // By key where keys tell equality, so that a long array does not take quadratic time.
    let mut keys = std::collections::HashSet::new();
    let mut nested: Vec<ValueRef<'_>> = Vec::new();
    for value in array.iter() {
        let is_new = match value {
            ValueRef::Document(_) | ValueRef::Array(_) => {
                let is_new = !nested.iter().any(|other| same(*other, value));
                nested.push(value);
                is_new
            }
            _ => keys.insert(espalier_value::key::of(value)),
        };
        if !is_new {
            return Some(value);
        }
    }
    None
}

/// MongoDB reads a required name as a path through documents.
fn has_path(doc: RawDoc<'_>, path: &str) -> bool {
    match path.split_once('.') {
        None => doc.elem(path).is_some(),
        Some((first, rest)) => doc.get_doc(first).is_some_and(|inner| has_path(inner, rest)),
    }
}
