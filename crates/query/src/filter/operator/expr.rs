//! `$expr`: an aggregation expression about the document comes out true.

use espalier_value::{Error, Result, ValueRef};

use super::{Operator, Place};
use crate::expression::Expression;
use crate::filter::Node;
use crate::filter::parse::Parser;

pub(super) const EXPR: Operator =
    Operator { name: "$expr", place: Place::Top(parse), doc: "An aggregation expression that comes out true." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Option<Node>> {
    parser.refuse_restricted("$expr")?;
    if !parser.whole_document {
        return Err(Error::bad_value("$expr can only be applied to the top-level document"));
    }
    Ok(Some(Node::Expr(Box::new(Expression::parse(argument, parser.scope)?))))
}
