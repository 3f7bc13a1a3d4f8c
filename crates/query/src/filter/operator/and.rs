//! `$and`: every filter of a list holds. Also reads the lists of `$or` and `$nor`.

use espalier_value::{Error, Result, ValueRef};

use super::{Operator, Place};
use crate::filter::Node;
use crate::filter::parse::{self, Parser};

pub(super) const AND: Operator =
    Operator { name: "$and", place: Place::Top(parse), doc: "Every filter of the list holds." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Option<Node>> {
    Ok(Some(Node::And(list("$and", argument, parser)?)))
}

/// A list of filters, at least one.
pub(super) fn list(name: &str, argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Vec<Node>> {
    let ValueRef::Array(array) = argument else {
        return Err(Error::bad_value(format!("{name} must be an array")));
    };
    if array.is_empty() {
        return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    array
        .iter()
        .map(|entry| match entry {
            ValueRef::Document(doc) => parse::document(doc, parser),
            _ => Err(Error::bad_value("$or/$and/$nor entries need to be full objects")),
        })
        .collect()
}
