//! `$jsonSchema`: the document conforms to a JSON Schema.

use espalier_value::{DocBuf, Error, RawDoc, Result, ValueRef};

use super::{Operator, Place};
use crate::context::Context;
use crate::filter::parse::Parser;
use crate::filter::schema::Schema;
use crate::filter::{Node, WholePredicate};

pub(super) const JSON_SCHEMA: Operator =
    Operator { name: "$jsonSchema", place: Place::Top(parse), doc: "Documents that conform to the JSON Schema." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Option<Node>> {
    parser.refuse_restricted("$jsonSchema")?;
    let ValueRef::Document(doc) = argument else {
        return Err(Error::type_mismatch("$jsonSchema must be an object"));
    };
    let predicate = JsonSchema { schema: Schema::parse(doc)?, source: DocBuf::from_raw(doc) };
    Ok(Some(Node::Whole(Box::new(predicate))))
}

#[derive(Debug)]
struct JsonSchema {
    schema: Schema,
    source: DocBuf,
}

impl WholePredicate for JsonSchema {
    fn name(&self) -> &'static str {
        "$jsonSchema"
    }

    fn matches(&self, doc: RawDoc<'_>, _: &Context) -> Result<bool> {
        self.schema.matches_document(doc)
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append("$jsonSchema", self.source.as_raw());
    }
}
