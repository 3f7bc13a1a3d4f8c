//! `$nin`: no value at the path is one of a list. An array matches only if none of its elements is in the list.

use espalier_value::Result;

use super::{Operator, Place, in_};
use crate::filter::Node;
use crate::filter::parse::Field;

pub(super) const NIN: Operator =
    Operator { name: "$nin", place: Place::Field(parse), doc: "No value at the path is one of the list." };

fn parse(field: &Field<'_>) -> Result<Node> {
    Ok(Node::Not(Box::new(in_::member("$nin", field)?)))
}
