//! Wildcard indexes in plans: any one path the index covers, as `(path, value)`.

use std::sync::Arc;

use espalier_query::filter::{Bounds, Interval};
use espalier_store::IndexKind;
use espalier_value::{Value, ValueRef};

use super::conditions::{Condition, Conditions};
use super::implies::excludes_null;
use super::scan::{IndexScan, PartBounds};
use crate::catalog::Index;
use crate::index::wildcard;

/// A scan for each condition that the index could answer.
pub fn candidates(index: &Arc<Index>, conditions: &Conditions<'_>, hinted: bool) -> Vec<IndexScan> {
    conditions.all.iter().filter_map(|condition| candidate(index, condition, hinted)).collect()
}

fn candidate(index: &Arc<Index>, condition: &Condition<'_>, hinted: bool) -> Option<IndexScan> {
    let path = condition.path.as_str();
    if let Some(above) = above_number(path) {
        // Positions are not in the index. Who insists on it gets all that has the array, or the document.
        let present = excludes_null(&condition.bounds) || is_held(&condition.bounds) || condition.operator == "$exists";
        // MongoDB refuses a position inside a position, and conditions on the elements of what is at one.
        let inside = condition.group.is_some() && path.rsplit('.').next().is_some_and(is_number);
        let plain = condition.leaf.is_some() && !inside && !has_adjacent_numbers(path);
        let usable = hinted && plain && present && wildcard::covers_below(&index.spec, above);
        return usable.then(|| subtree(index, above));
    }
    if !wildcard::covers(&index.spec, path) {
        return None;
    }
    let reaches = |interval: &Interval| spans_containers(interval);
    let whole = wildcard::covers_below(&index.spec, path);
    match condition.leaf.map(|_| condition.operator) {
        // What is inside a document or an array lies under longer paths.
        Some("$exists") if whole => Some(subtree(index, path)),
        Some("$type") if whole && condition.bounds.intervals.iter().any(reaches) => Some(subtree(index, path)),
        Some("$eq" | "$in") if is_held(&condition.bounds) => Some(scan(index, path, &condition.bounds)),
        // Whole documents and arrays are not in the index, and neither are missing fields.
        _ if excludes_null(&condition.bounds) && !condition.bounds.intervals.iter().any(reaches) => {
            Some(scan(index, path, &condition.bounds))
        }
        _ => None,
    }
}

/// The part of a path before the first number that may be the position of an element.
fn above_number(path: &str) -> Option<&str> {
    let mut dots = path.match_indices('.').map(|(at, _)| at);
    let at = dots.find(|at| is_number(path[at + 1..].split('.').next().unwrap_or_default()))?;
    Some(&path[..at])
}

fn has_adjacent_numbers(path: &str) -> bool {
    let numbers: Vec<bool> = path.split('.').map(is_number).collect();
    numbers.windows(2).skip(1).any(|pair| pair == [true, true])
}

fn is_number(part: &str) -> bool {
    part.bytes().all(|b| b.is_ascii_digit())
}

/// True for values that the index holds as they are: no null, which also stands for missing, and no document or array
/// with something inside. An empty array is held as undefined.
fn is_held(bounds: &Bounds) -> bool {
    let empty_array = |value: ValueRef<'_>| matches!(value, ValueRef::Array(array) if array.is_empty());
    let has_empty_array = bounds.intervals.iter().any(|i| empty_array(i.low.or_null()));
    bounds.intervals.iter().all(|interval| {
        interval.is_point()
            && match interval.low.or_null() {
                ValueRef::Null => false,
                ValueRef::Undefined => has_empty_array,
                ValueRef::Document(doc) => doc.is_empty(),
                ValueRef::Array(array) => array.is_empty(),
                _ => true,
            }
    })
}

fn scan(index: &Arc<Index>, path: &str, bounds: &Bounds) -> IndexScan {
    over(index, vec![Interval::point(ValueRef::String(path))], bounds)
}

/// Everything at a path and below it.
fn subtree(index: &Arc<Index>, path: &str) -> IndexScan {
    let (first, past) = (format!("{path}."), format!("{path}/"));
    let below = Interval::new(Value::string(first), true, Value::string(past), false);
    over(index, vec![Interval::point(ValueRef::String(path)), below], &Bounds::everything())
}

fn over(index: &Arc<Index>, paths: Vec<Interval>, bounds: &Bounds) -> IndexScan {
    IndexScan {
        index: index.clone(),
        parts: vec![
            PartBounds::new(&Bounds::exact(paths), IndexKind::Ascending),
            PartBounds::new(bounds, IndexKind::Ascending),
        ],
        reverse: false,
        exact: false,
        run: None,
        distinct: None,
    }
}

/// True if the interval reaches into documents or arrays, whose values lie under longer paths.
fn spans_containers(interval: &Interval) -> bool {
    let rank = |v: ValueRef<'_>| v.ty().rank();
    let (low, high) = (rank(interval.low.or_null()), rank(interval.high.or_null()));
    low <= 25 && high >= 20
}
