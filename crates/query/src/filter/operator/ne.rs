//! `$ne`: no value at the path is equal. An array matches only if none of its elements is.

use espalier_value::{Error, Result, ValueRef};

use super::{Operator, Place, eq::Eq};
use crate::filter::Node;
use crate::filter::parse::Field;

pub(super) const NE: Operator =
    Operator { name: "$ne", place: Place::Field(parse), doc: "No value at the path is equal to the given one." };

fn parse(field: &Field<'_>) -> Result<Node> {
    if let ValueRef::Regex(..) = field.argument {
        return Err(Error::bad_value("Can't have regex as arg to $ne."));
    }
    Ok(Node::Not(Box::new(field.leaf(Eq::new(field.argument, field.parser.scope)?))))
}
