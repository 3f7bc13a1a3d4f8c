//! `$or`: at least one filter of a list holds.

use espalier_value::{Result, ValueRef};

use super::{Operator, Place, and};
use crate::filter::Node;
use crate::filter::parse::Parser;

pub(super) const OR: Operator =
    Operator { name: "$or", place: Place::Top(parse), doc: "At least one filter of the list holds." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Option<Node>> {
    Ok(Some(Node::Or(and::list("$or", argument, parser)?)))
}
