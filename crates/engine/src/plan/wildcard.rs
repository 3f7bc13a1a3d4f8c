//! Wildcard indexes in plans: any one path the index covers, as `(path, value)`.

use std::sync::Arc;

use espalier_query::filter::{Bounds, Interval};
use espalier_store::IndexKind;
use espalier_value::ValueRef;

use super::conditions::Conditions;
use super::implies::excludes_null;
use super::scan::{IndexScan, PartBounds};
use crate::catalog::Index;
use crate::index::wildcard;

/// A scan for each condition that the index could answer.
pub fn candidates(index: &Arc<Index>, conditions: &Conditions<'_>) -> Vec<IndexScan> {
    let usable = |c: &&super::conditions::Condition<'_>| {
        // Whole documents and arrays are not in the index, and neither are missing fields. Positions are not either.
        wildcard::covers(&index.spec, &c.path)
            && excludes_null(&c.bounds)
            && !c.path.split('.').any(|part| part.bytes().all(|b| b.is_ascii_digit()))
            && !c.bounds.intervals.iter().any(spans_containers)
    };
    conditions.all.iter().filter(usable).map(|c| scan(index, &c.path, &c.bounds)).collect()
}

fn scan(index: &Arc<Index>, path: &str, bounds: &Bounds) -> IndexScan {
    let at_path = Bounds::exact(vec![Interval::point(ValueRef::String(path))]);
    IndexScan {
        index: index.clone(),
        parts: vec![PartBounds::new(&at_path, IndexKind::Ascending), PartBounds::new(bounds, IndexKind::Ascending)],
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
