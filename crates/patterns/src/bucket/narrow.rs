//! Which buckets can hold a reading that a filter lets through: conditions on `by`, on the time, on `_id` and on fields
//! with an index become conditions on buckets. The whole filter then decides on each reading.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_query::filter::{Leaf, Node};
use espalier_store::{Find, Namespace, Transaction};
use espalier_value::{ArrayBuf, DocBuf, Path, Result, ValueRef};

use super::{Bucket, Time};

const OPERATORS: [&str; 6] = ["$eq", "$gt", "$gte", "$in", "$lt", "$lte"];

impl Bucket {
    /// The filter for the buckets that can have a match.
    pub(super) fn narrow(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Arc<Filter>> {
        let indexed: Vec<String> = at
            .indexes(&self.buckets(ns))?
            .iter()
            .filter_map(|index| index.spec.parts.first().map(|part| part.path.as_str().to_string()))
            .collect();
        match self.condition(find.filter.root(), &indexed) {
            Some(condition) => Ok(Arc::new(Filter::parse(condition.as_raw(), &Scope::of(&find.context))?)),
            None => Ok(Arc::new(Filter::empty())),
        }
    }

    /// A condition that every bucket with a match meets; `None` if any bucket may have one.
    fn condition(&self, node: &Node, indexed: &[String]) -> Option<DocBuf> {
        match node {
            Node::And(nodes) => list("$and", nodes.iter().filter_map(|node| self.condition(node, indexed)).collect()),
            Node::Or(nodes) => {
                let all: Option<Vec<DocBuf>> = nodes.iter().map(|node| self.condition(node, indexed)).collect();
                list("$or", all?)
            }
            Node::Leaf(leaf) => self.leaf(leaf, indexed),
            Node::Nor(_) | Node::Not(_) | Node::Expr(_) | Node::Whole(_) => None,
        }
    }

    fn leaf(&self, leaf: &Leaf, indexed: &[String]) -> Option<DocBuf> {
        if !OPERATORS.contains(&leaf.predicate.name()) {
            return None;
        }
        let mut described = DocBuf::new();
        leaf.predicate.describe(&mut described);
        let operator = described.as_raw().first()?;
        let mut out = DocBuf::new();
        if self.by.contains(&leaf.path) {
            // Missing is stored as null here, which to these operators is the same.
            out.append(leaf.path.as_str(), &described);
            return Some(out);
        }
        if let Some(time) = self.time.as_ref().filter(|time| time.path == leaf.path) {
            let bounds = of_start(time, operator.name(), operator.value())?;
            out.append(&time.start, &bounds);
            return Some(out);
        }
        let path = self.item_path(leaf.path.as_str());
        let by_elements = has_names_only(&leaf.path) && indexed.contains(&path) && is_definite(operator.value());
        by_elements.then(|| {
            out.append(&path, &described);
            out
        })
    }
}

/// What a condition on the time says about the beginning of the window.
fn of_start(time: &Time, operator: &str, value: ValueRef<'_>) -> Option<DocBuf> {
    let start = |at_ms: i64| ValueRef::DateTime(time.every.window(at_ms).0);
    let mut out = DocBuf::new();
    match (operator, value) {
        ("$in", ValueRef::Array(list)) => {
            // The time of a reading is a date: nothing else in the list can be it.
            let starts: ArrayBuf = list
                .iter()
                .filter_map(|value| if let ValueRef::DateTime(at_ms) = value { Some(start(at_ms)) } else { None })
                .collect();
            out.append("$in", &starts);
        }
        ("$eq", ValueRef::DateTime(at_ms)) => {
            out.append("$eq", start(at_ms));
        }
        ("$gt" | "$gte", ValueRef::DateTime(at_ms)) => {
            out.append("$gte", start(at_ms));
        }
        ("$lt", ValueRef::DateTime(at_ms)) => {
            out.append("$lt", ValueRef::DateTime(at_ms));
        }
        ("$lte", ValueRef::DateTime(at_ms)) => {
            out.append("$lte", ValueRef::DateTime(at_ms));
        }
        _ => return None,
    }
    Some(out)
}

/// A number in a path would mean a position among the readings.
fn has_names_only(path: &Path) -> bool {
    path.parts().iter().all(|part| part.index().is_none())
}

/// Null is met by what is not there, and a list may be met as a whole: an index on elements does not tell.
fn is_definite(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Null | ValueRef::Undefined | ValueRef::Regex(..) | ValueRef::MinKey | ValueRef::MaxKey => false,
        ValueRef::Array(list) => list.iter().all(|value| !matches!(value, ValueRef::Array(_)) && is_definite(value)),
        _ => true,
    }
}

fn list(operator: &str, mut conditions: Vec<DocBuf>) -> Option<DocBuf> {
    if conditions.len() < 2 {
        return conditions.pop();
    }
    let mut out = DocBuf::new();
    out.append_array(operator, |list| {
        conditions.iter().for_each(|condition| {
            list.push(condition.as_raw());
        });
    });
    Some(out)
}

/// The equality that a filter of buckets has on a path, if it has one.
pub fn is_fixed(filter: &Filter, path: &Path) -> bool {
    fn within(node: &Node, path: &Path) -> bool {
        match node {
            Node::And(nodes) => nodes.iter().any(|node| within(node, path)),
            Node::Leaf(leaf) => leaf.path == *path && leaf.predicate.equality().is_some(),
            _ => false,
        }
    }
    within(filter.root(), path)
}
