//! `$alwaysFalse`: no document.

use espalier_value::{Result, ValueRef};

use super::{Operator, Place, always_true::constant};
use crate::filter::Node;
use crate::filter::parse::Parser;

pub(super) const ALWAYS_FALSE: Operator =
    Operator { name: "$alwaysFalse", place: Place::Top(parse), doc: "No document." };

fn parse(argument: ValueRef<'_>, _: &Parser<'_>) -> Result<Option<Node>> {
    constant("$alwaysFalse", false, argument)
}
