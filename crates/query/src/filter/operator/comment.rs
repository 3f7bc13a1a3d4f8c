//! `$comment`: words for whoever reads logs and profiles; says nothing about documents.

use espalier_value::{Result, ValueRef};

use super::{Operator, Place};
use crate::filter::Node;
use crate::filter::parse::Parser;

pub(super) const COMMENT: Operator =
    Operator { name: "$comment", place: Place::Top(parse), doc: "A remark; puts no condition." };

fn parse(_: ValueRef<'_>, _: &Parser<'_>) -> Result<Option<Node>> {
    Ok(None)
}
