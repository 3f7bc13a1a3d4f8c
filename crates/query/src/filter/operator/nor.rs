//! `$nor`: no filter of a list holds.

use espalier_value::{Result, ValueRef};

use super::{Operator, Place, and};
use crate::filter::Node;
use crate::filter::parse::Parser;

pub(super) const NOR: Operator =
    Operator { name: "$nor", place: Place::Top(parse), doc: "No filter of the list holds." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Option<Node>> {
    Ok(Some(Node::Nor(and::list("$nor", argument, parser)?)))
}
