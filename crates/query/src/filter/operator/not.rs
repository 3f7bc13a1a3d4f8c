//! `$not`: the conditions on a field do not hold together. Matches missing fields too.

use espalier_value::{Error, Result, ValueRef};

use super::{Operator, Place, regex::Regex};
use crate::filter::Node;
use crate::filter::parse::{self, Field};

pub(super) const NOT: Operator =
    Operator { name: "$not", place: Place::Field(parse), doc: "The conditions on the field do not hold." };

fn parse(field: &Field<'_>) -> Result<Node> {
    let inner = match field.argument {
        ValueRef::Regex(pattern, options) => field.leaf(Regex::new(pattern, options)?),
        ValueRef::Document(doc) if doc.is_empty() => return Err(Error::bad_value("$not cannot be empty")),
        ValueRef::Document(doc) => {
            let mut nodes = Vec::new();
            parse::operators(field.path, doc, &field.parser, &mut nodes)?;
            Node::And(nodes)
        }
        _ => return Err(Error::bad_value("$not needs a regex or a document")),
    };
    Ok(Node::Not(Box::new(inner)))
}
