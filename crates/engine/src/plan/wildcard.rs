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
pub fn candidates(index: &Arc<Index>, conditions: &Conditions<'_>) -> Vec<IndexScan> {
    conditions.all.iter().filter_map(|condition| candidate(index, condition)).collect()
}

fn candidate(index: &Arc<Index>, condition: &Condition<'_>) -> Option<IndexScan> {
    let path = condition.path.as_str();
    // Positions are not in the index.
    let numbered = path.split('.').any(|part| part.bytes().all(|b| b.is_ascii_digit()));
    if numbered || !wildcard::covers(&index.spec, path) {
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
