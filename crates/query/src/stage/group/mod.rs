//! `$group` computes one document for all that share a key.
//!
//! [`inputs`] reads what a document has to give in one pass over its fields, [`feeding`] makes the group's values of it,
//! [`table`] keeps the groups by their memcomparable key, [`grouping`] pulls the documents through and, beyond the memory
//! limit, puts groups on disk as partial results that are merged in the end. Where parts of the input are read by several
//! threads, [`columns`] holds the values between them and the table.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Elem, Error, Path, RawDoc, Result, ValueRef};

use super::origin::{Ahead, Origin};
use super::{Definition, Parse, Parser, Run, Stage, Stages};
use crate::accumulator::{self, AccumulatorSpec};
use crate::expression::{Deps, Expression, Scope};
use crate::stream::Stream;

mod columns;
mod feeding;
mod grouping;
pub(super) mod hash;
mod inputs;
mod places;
mod table;
#[cfg(test)]
mod tests;

use inputs::Inputs;

pub(super) static GROUP: Definition =
    Definition { name: "$group", parse: Parse::Stage(parse), doc: "Computes one document for all that share a key." };

/// The key and the accumulators, of which each document gives a value to each.
#[derive(Debug)]
pub struct Group {
    /// Of the accumulated fields.
    names: Vec<Box<str>>,
    accumulators: Vec<AccumulatorSpec>,
    id: Expression,
    inputs: Inputs,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: &str| Err(Error::new(Code(code), message));
    let ValueRef::Document(spec) = argument else {
        return refuse(15947, "a group's fields must be specified in an object");
    };
    let mut id = None;
    let mut fields = Vec::new();
    for elem in spec {
        match elem.name() {
            "_id" if id.is_some() => return refuse(15948, "a group's _id may only be specified once"),
            "_id" => id = Some(parse_id(elem.value(), parser.scope)?),
            // What a router would say to a shard.
            "$doingMerge" => {}
            _ => fields.push(parse_field(elem, parser.scope)?),
        }
    }
    match id {
        Some(id) => Ok(vec![Arc::new(Group::new(id, fields))]),
        None => refuse(15955, "a group specification must include an _id"),
    }
}

/// Accumulated fields where the key is given otherwise, as in `$bucket`.
pub(super) fn parse_fields(fields: RawDoc<'_>, scope: &Scope) -> Result<Vec<(Box<str>, AccumulatorSpec)>> {
    if fields.elem("_id").is_some() {
        return Err(Error::new(Code(15948), "a group's _id may only be specified once"));
    }
    fields.iter().map(|elem| parse_field(elem, scope)).collect()
}

fn parse_field(elem: Elem<'_>, scope: &Scope) -> Result<(Box<str>, AccumulatorSpec)> {
    Ok((elem.name().into(), accumulator::parse(elem.name(), elem.value(), scope)?))
}

/// The expression of a group's key.
fn parse_id(id: ValueRef<'_>, scope: &Scope) -> Result<Expression> {
    let ValueRef::Document(fields) = id else { return Expression::parse(id, scope) };
    let Some(first) = fields.first().filter(|first| !first.name().starts_with('$')) else {
        return Expression::parse(id, scope);
    };
    if fields.iter().any(|field| field.name().starts_with('$') || field.name().contains('.')) {
        return Err(Error::new(Code(17390), "$group does not support inclusion-style expressions"));
    }
    if fields.count() > 1 {
        return Expression::parse(id, scope);
    }
    // The one field of a key is null where it is missing, like a key that is no document. Of several fields, MongoDB
    // tells null and missing apart.
    let mut or_null = DocBuf::new();
    or_null.append_doc(first.name(), |value| {
        value.append_array("$ifNull", |either| {
            either.push(first.value()).push(ValueRef::Null);
        });
    });
    Expression::parse(or_null.as_raw().into(), scope)
}

impl Group {
    pub(super) fn new(id: Expression, fields: Vec<(Box<str>, AccumulatorSpec)>) -> Group {
        let (names, accumulators): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        let inputs = Inputs::new(expressions(&id, &accumulators), None);
        Group { names, accumulators, id, inputs }
    }

    /// The expression of the key.
    pub fn id(&self) -> &Expression {
        &self.id
    }

    pub fn accumulators(&self) -> &[AccumulatorSpec] {
        &self.accumulators
    }

    /// What documents give whose array at the path is lent apart.
    fn inputs_apart(&self, path: &Path) -> Inputs {
        Inputs::new(expressions(&self.id, &self.accumulators), Some(path))
    }

    /// The expression of a value: the key's first, then those of the accumulators.
    fn expression(&self, at: usize) -> &Expression {
        match at.checked_sub(1) {
            None => &self.id,
            Some(at) => self.accumulators[at].expression(),
        }
    }

    /// What it reads of a document.
    fn reads(&self) -> Deps {
        let mut reads = self.id.dependencies();
        self.accumulators.iter().for_each(|spec| reads.merge(&spec.expression().dependencies()));
        reads
    }
}

/// Of every value: the key's first, then those of the accumulators.
fn expressions<'g>(id: &'g Expression, accumulators: &'g [AccumulatorSpec]) -> impl Iterator<Item = &'g Expression> {
    std::iter::once(id).chain(accumulators.iter().map(AccumulatorSpec::expression))
}

impl Stage for Group {
    fn name(&self) -> &'static str {
        GROUP.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(grouping::Grouping::new(self, input, run.clone())))
    }

    fn group(self: Arc<Self>) -> Option<Arc<Group>> {
        Some(self)
    }

    fn ahead(&self) -> Ahead {
        Ahead::Paths
    }

    fn origin(&self, path: &str) -> Origin {
        let part = match path.strip_prefix("_id") {
            Some("") => self.id.as_field_path(),
            Some(below) => below.strip_prefix('.').and_then(|name| self.id.part(name)),
            None => None,
        };
        match part.filter(|part| part.is_single()) {
            Some(part) => Origin::Key(part.as_str().into()),
            None => Origin::Made,
        }
    }

    fn first_of(&self) -> Option<&Path> {
        let path = self.id.as_field_path().or_else(|| self.id.only_part())?;
        self.accumulators.iter().all(|spec| spec.name() == "$first").then_some(path)
    }

    fn needs(&self, _after: &Deps) -> Deps {
        self.reads()
    }
}

/// The document that an accumulator's `n` may refer to: the fields of the group's key.
fn key_fields(id: ValueRef<'_>) -> RawDoc<'_> {
    id.as_doc().unwrap_or(RawDoc::EMPTY)
}
