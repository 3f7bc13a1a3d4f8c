//! `$sortByCount` counts each value and gives the most frequent first: `$group` and `$sort` in one.

use std::sync::Arc;

use espalier_value::{Code, Error, Result, ValueRef, doc};

use super::group::Group;
use super::sort::SortStage;
use super::{Definition, Parse, Parser, Stages};
use crate::accumulator;
use crate::expression::Expression;
use crate::sort::Sort;

pub(super) static SORT_BY_COUNT: Definition = Definition {
    name: "$sortByCount",
    parse: Parse::Stage(parse),
    doc: "Counts each value and gives the most frequent first.",
};

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let message = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
    match argument {
        ValueRef::String(path) if path.starts_with('$') => {}
        ValueRef::String(_) => return Err(Error::new(Code(40148), message)),
        ValueRef::Document(expression) => {
            if !expression.first().is_some_and(|first| first.name().starts_with('$')) {
                return Err(Error::new(Code(40147), message));
            }
        }
        _ => {
            let message = "the sortByCount field must be specified as a string or as an object";
            return Err(Error::new(Code(40149), message));
        }
    }
    let id = Expression::parse(argument, parser.scope)?;
    let one = doc! { "$sum": 1 };
    let count = accumulator::parse("count", one.as_raw().into(), parser.scope)?;
    let group = Group::new(id, vec![("count".into(), count)]);
    let by_count = doc! { "count": -1 };
    let sort = Sort::parse(by_count.as_raw(), parser.scope)?
        .ok_or_else(|| Error::internal("a sort by one field is a sort"))?;
    Ok(vec![Arc::new(group), Arc::new(SortStage::new(sort))])
}
