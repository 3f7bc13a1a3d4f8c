//! Plans that read one entry for each value at a path: `distinct`, and a `$group` that looks at no more than the first
//! document of each group.

use std::sync::Arc;

use espalier_query::filter::{Bounds, Interval};
use espalier_store::Distinct;
use espalier_value::{Result, Type, ValueRef};

use super::choose::{Request, finish, scans_for, whole};
use super::conditions::Conditions;
use super::scan::{IndexScan, PartBounds, Skip};
use super::{Access, Plan};
use crate::catalog::Index;
use crate::exec::entries::Entries;
use crate::view::View;

/// The best such plan: one that needs no documents, then the one that compares the shortest keys.
pub fn plan<'r>(
    distinct: &Distinct,
    indexes: &[&'r Arc<Index>],
    conditions: &Conditions<'r>,
    request: &Request<'r>,
    view: &View,
) -> Result<Option<Plan>> {
    let mut best: Option<((bool, usize, usize), Plan)> = None;
    for index in indexes.iter().filter(|index| !index.spec.is_wildcard()) {
        let Some(at) = index.spec.parts.iter().position(|part| part.path.as_str() == distinct.path) else { continue };
        for scan in candidates(index, at, distinct, conditions, request, view)? {
            let plan = finish(scan, request);
            let Access::Index(_) = &plan.access else { continue };
            // Documents that are sorted or looked at again are not the first of their value.
            if plan.residual || !plan.sorted {
                continue;
            }
            let rank = (!plan.covered, at, index.spec.parts.len());
            if best.as_ref().is_none_or(|(least, _)| rank < *least) {
                best = Some((rank, plan));
            }
        }
    }
    Ok(best.map(|(_, plan)| plan))
}

/// The scans of an index whose part `at` has the path that find what is asked for and nothing else.
fn candidates<'r>(
    index: &'r Arc<Index>,
    at: usize,
    distinct: &Distinct,
    conditions: &Conditions<'r>,
    request: &Request<'r>,
    view: &View,
) -> Result<Vec<IndexScan>> {
    let spec = &index.spec;
    let numbered = spec.parts[at].path.parts().iter().any(|part| part.index().is_some());
    if numbered || index.multikey() & (1 << at) != 0 && !tells_elements(index, at, distinct, request, view)? {
        return Ok(Vec::new());
    }
    let scans = match request.filter.is_empty() {
        false => scans_for(index, request.filter.root(), conditions, request, request.hint.is_some()),
        // A sparse index lacks only documents without the value.
        true if at > 0 || spec.partial.is_some() || spec.sparse && distinct.missing => Vec::new(),
        true => vec![IndexScan { exact: true, ..whole(index) }],
    };
    let suits = |scan: &IndexScan| {
        // Whoever needs documents without the value needs one of each value, not of each combination with others.
        let alone = !distinct.missing || scan.parts[..at].iter().all(PartBounds::is_point);
        let comparable = spec.collator() == request.collator || !scan.parts[at].may_hold_strings();
        scan.exact && alone && comparable
    };
    let skip = Some(Skip { parts: at + 1, missing: distinct.missing });
    Ok(scans.into_iter().filter(suits).map(|scan| IndexScan { distinct: skip, ..scan }).collect())
}

/// The keys of a part that holds elements of arrays are the values that `distinct` asks for, if every document takes
/// part, none has an empty array (whose key is that of undefined) and none an array inside an array.
fn tells_elements(
    index: &Arc<Index>,
    at: usize,
    distinct: &Distinct,
    request: &Request<'_>,
    view: &View,
) -> Result<bool> {
    if distinct.missing || at > 0 || !request.filter.is_empty() {
        return Ok(false);
    }
    let undefined = Bounds::exact(vec![Interval::point(ValueRef::Undefined)]);
    let misleading = undefined.union(&Bounds::of_rank(Type::Array.rank()));
    let mut scan = whole(index);
    scan.parts[0] = PartBounds::new(&misleading, index.spec.parts[0].kind);
    Ok(!Entries::open(view, &scan)?.next()?)
}
