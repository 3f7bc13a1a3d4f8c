//! Candidates and the choice between them.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_query::filter::{Bounds, Interval, Node};
use espalier_store::{Distinct, Hint, IndexKind};
use espalier_value::{Code, Collator, Error, RawDoc, Result, ValueRef, collation};

use super::conditions::Conditions;
use super::implies::{excludes_null, implies};
use super::order::{Provides, provides};
use super::scan::{IndexScan, PartBounds};
use super::{Access, Plan, Wanted, distinct, wildcard};
use crate::catalog::{Collection, Index};
use crate::exec::estimate;
use crate::view::View;

/// Most scans that an `$in` is split into to keep the index's order.
const MERGE_MAX: usize = 128;
/// Entries looked at to tell candidates apart.
const ESTIMATE_MAX: u64 = 200;

/// What beside the filter decides a plan.
pub struct Request<'r> {
    pub collection: &'r Collection,
    pub filter: &'r Filter,
    pub wanted: Wanted<'r>,
    pub hint: Option<&'r Hint>,
    /// Fields a covered plan must have; `None` if the whole document is needed.
    pub fields: Option<&'r [String]>,
    /// How the query compares strings.
    pub collator: Collator<'r>,
    /// Of documents with one value only the first is needed.
    pub distinct: Option<&'r Distinct>,
    pub limit: Option<u64>,
}

pub fn plan(request: &Request<'_>, view: &View) -> Result<Plan> {
    if let Wanted::Natural { reverse } = request.wanted {
        return Ok(collection_scan(request, reverse));
    }
    if request.distinct.is_none()
        && let Some(plan) = by_id(request)
    {
        return Ok(plan);
    }
    let conditions = request.conditions(request.filter.root(), Collator::SIMPLE);
    let hinted = match request.hint {
        Some(Hint::Natural { reverse }) => return Ok(collection_scan(request, *reverse)),
        Some(hint) => Some(hinted_index(request.collection, hint)?),
        None => None,
    };
    let indexes: Vec<&Arc<Index>> = match hinted {
        Some(index) => vec![index],
        None => request.collection.indexes.iter().filter(|i| i.is_usable()).collect(),
    };
    if let Some(distinct) = request.distinct
        && let Some(plan) = distinct::plan(distinct, &indexes, &conditions, request, view)?
    {
        return Ok(plan);
    }
    let mut candidates = Vec::new();
    for index in &indexes {
        candidates.extend(scans_for(index, request.filter.root(), &conditions, request, hinted.is_some()));
    }
    if let Some(best) = pick(candidates, request, view)? {
        return Ok(best);
    }
    if let Some(union) = union(request, &indexes, &conditions, view)? {
        return Ok(union);
    }
    match hinted {
        // Read whole, a wildcard index has some documents many times and others not at all.
        Some(index) if index.spec.is_wildcard() => Err(Error::new(
            Code::NoQueryExecutionPlans,
            "error processing query: planner returned error :: caused by :: No query solutions: a wildcard index \
             answers only conditions on fields that it holds; leave out the hint or name another index",
        )),
        // A sparse or partial index that was asked for is read whole, as MongoDB does.
        Some(index) => Ok(finish(whole(index), request)),
        None => Ok(sort_scan(&indexes, request, &conditions).unwrap_or_else(|| collection_scan(request, false))),
    }
}

/// `{_id: value}` alone, the most frequent filter of all: there is nothing to choose.
fn by_id(request: &Request<'_>) -> Option<Plan> {
    let Node::Leaf(leaf) = request.filter.root() else { return None };
    if request.hint.is_some() || leaf.path.as_str() != "_id" || leaf.predicate.name() != "$eq" {
        return None;
    }
    let value = leaf.predicate.equality()?;
    // An array is found by its elements, and null stands for more than null.
    if matches!(value, ValueRef::Array(_) | ValueRef::Null | ValueRef::Undefined | ValueRef::Regex(..)) {
        return None;
    }
    let index = request.collection.indexes.first()?.clone();
    if index.spec.collator() != request.filter.collator() && collation::is_collated(value) {
        return None;
    }
    let value = index.spec.collator().translate(value);
    let parts = vec![PartBounds::new(&Bounds::exact(vec![Interval::point(value.or_null())]), IndexKind::Ascending)];
    let scan = IndexScan { index, parts, reverse: false, exact: true, run: None, distinct: None };
    Some(Plan { access: Access::Index(scan), residual: false, sorted: true, covered: false })
}

fn collection_scan(request: &Request<'_>, reverse: bool) -> Plan {
    let sorted = !matches!(request.wanted, Wanted::Sorted(_));
    Plan { access: Access::Collection { reverse }, residual: !request.filter.is_empty(), sorted, covered: false }
}

/// The index a hint names.
pub fn hinted_index<'c>(collection: &'c Collection, hint: &Hint) -> Result<&'c Arc<Index>> {
    let mut found = collection.indexes.iter().filter(|i| i.is_usable()).filter(|index| match hint {
        Hint::Name(name) => index.spec.name == *name,
        Hint::Key(key) => same_key(index.spec.key(), key.as_raw()),
        Hint::Natural { .. } => false,
    });
    let first = found.next();
    // Indexes with one key may differ in their collation or in the documents they hold.
    if let (Some(first), Some(second)) = (first, found.next()) {
        return Err(Error::new(
            Code::IndexNotFound,
            format!(
                "error processing query: planner returned error :: caused by :: Hint matched multiple indexes, must \
                 hint by index name. Matched: {} and {}",
                first.spec.name, second.spec.name
            ),
        ));
    }
    first.ok_or_else(|| {
        Error::bad_value(
            "error processing query: planner returned error :: caused by :: hint provided does not correspond to an \
             existing index",
        )
    })
}

pub fn same_key(a: RawDoc<'_>, b: RawDoc<'_>) -> bool {
    a.count() == b.count()
        && a.iter()
            .zip(b.iter())
            .all(|(x, y)| x.name() == y.name() && espalier_value::compare(x.value(), y.value()).is_eq())
}

impl<'r> Request<'r> {
    /// What a filter demands of indexes of one collation.
    fn conditions(&self, node: &'r Node, index: Collator<'r>) -> Conditions<'r> {
        Conditions::of(node, self.filter.collator(), index)
    }
}

/// The scans of one index that a filter allows. `plain` is what the filter demands of indexes without a collation,
/// which nearly all are.
pub(super) fn scans_for<'r>(
    index: &'r Arc<Index>,
    node: &'r Node,
    plain: &Conditions<'r>,
    request: &Request<'r>,
    hinted: bool,
) -> Vec<IndexScan> {
    match index.spec.collator() {
        Collator::SIMPLE => scans(index, plain, hinted),
        collated => scans(index, &request.conditions(node, collated), hinted),
    }
}

/// The scans of one index that the conditions allow.
fn scans(index: &Arc<Index>, conditions: &Conditions<'_>, hinted: bool) -> Vec<IndexScan> {
    let spec = &index.spec;
    if let Some(partial) = &spec.partial
        && !hinted
        && !implies(conditions, partial.root())
    {
        return Vec::new();
    }
    if spec.is_wildcard() {
        return wildcard::candidates(index, conditions, hinted);
    }
    let Some((scan, consumed)) = bound_scan(index, conditions) else { return Vec::new() };
    if spec.sparse && !hinted && !scan.parts.iter().any(|p| excludes_null(&Bounds::exact(p.source.clone()))) {
        return Vec::new();
    }
    let exact = scan.exact && consumed == conditions.all.len() && !conditions.others && conditions.ors.is_empty();
    vec![IndexScan { exact, ..scan }]
}

/// Bounds for each part of the key, and how many conditions they express fully. `None` if the first part has none.
fn bound_scan(index: &Arc<Index>, conditions: &Conditions<'_>) -> Option<(IndexScan, usize)> {
    let multikey = index.multikey();
    let mut parts = Vec::with_capacity(index.spec.parts.len());
    let mut consumed = 0;
    let mut exact = true;
    // The `$elemMatch` whose element the key's array parts must come from; None: no array part is bound yet.
    let mut array_group: Option<Option<usize>> = None;
    for (i, part) in index.spec.parts.iter().enumerate() {
        let is_multikey = multikey & (1 << i) != 0;
        let found = conditions.all.iter().filter(|c| c.path == part.path.as_str());
        let bounds = if is_multikey {
            // Values of one array are spread over many keys: each key answers one demand, or those of one element.
            let best = found
                .filter(|c| array_group.is_none_or(|g| g.is_some() && g == c.group))
                .max_by_key(|c| c.bounds.intervals.iter().all(Interval::is_point));
            best.map(|best| {
                array_group.get_or_insert(best.group);
                // One demand that an element meets is met by the document; a number may be the place of an element.
                let numbered = part.path.parts().iter().any(|part| part.index().is_some());
                exact &= best.bounds.exact && best.group.is_none() && !numbered;
                consumed += 1;
                let mut bounds = best.bounds.clone();
                if best.group.is_some() && !best.within_object {
                    let same = conditions.all.iter().filter(|c| c.path == best.path && c.group == best.group);
                    same.for_each(|c| bounds = bounds.intersect(&c.bounds));
                }
                bounds
            })
        } else {
            let mut merged: Option<Bounds> = None;
            for condition in found {
                let bounds = condition.single.as_ref().unwrap_or(&condition.bounds);
                exact &= bounds.exact && condition.group.is_none();
                consumed += 1;
                merged = Some(match merged {
                    Some(merged) => merged.intersect(bounds),
                    None => bounds.clone(),
                });
            }
            merged
        };
        match bounds {
            Some(bounds) => parts.push(PartBounds::new(&bounds, part.kind)),
            None if i == 0 => return None,
            None => parts.push(PartBounds::everything(part.kind)),
        }
    }
    Some((IndexScan { index: index.clone(), parts, reverse: false, exact, run: None, distinct: None }, consumed))
}

/// The best of the candidates: the fewest entries by a short look, then order given, then tighter bounds.
fn pick(candidates: Vec<IndexScan>, request: &Request<'_>, view: &View) -> Result<Option<Plan>> {
    let mut plans: Vec<(IndexScan, Plan)> = Vec::with_capacity(candidates.len());
    for scan in candidates {
        plans.push((scan.clone(), finish(scan, request)));
    }
    if plans.len() < 2 {
        return Ok(plans.pop().map(|(_, plan)| plan));
    }
    /// Cost, sort still to do, looser bounds: the least wins.
    type Rank = (u64, u64, std::cmp::Reverse<(usize, usize)>);
    let mut best: Option<(Rank, Plan)> = None;
    for (scan, plan) in plans {
        let entries = estimate(view, &scan, ESTIMATE_MAX)?;
        let needed = match request.limit {
            // In order and all matches: reading stops at the limit.
            Some(limit) if plan.sorted && !plan.residual => entries.min(limit),
            _ => entries,
        };
        // Sorting in memory or fetching documents costs about as much as reading half as many more entries.
        let cost = needed * 4 + if plan.sorted { 0 } else { needed * 2 } + if plan.covered { 0 } else { needed };
        let rank = (cost, u64::from(!plan.sorted), std::cmp::Reverse(scan.tightness()));
        if best.as_ref().is_none_or(|(r, _)| rank < *r) {
            best = Some((rank, plan));
        }
    }
    Ok(best.map(|(_, plan)| plan))
}

/// From bounds to a plan: order, what is left to check, whether the documents are needed.
pub(super) fn finish(mut scan: IndexScan, request: &Request<'_>) -> Plan {
    let residual = !scan.exact && !request.filter.is_empty();
    let covered = !residual && request.fields.is_some_and(|fields| covers(&scan, fields));
    match request.wanted {
        Wanted::Sorted(sort) => match provides(&scan, sort) {
            Provides::Directly { reverse } => {
                scan.reverse = reverse;
                Plan { access: Access::Index(scan), residual, sorted: true, covered }
            }
            Provides::Merged { leading, reverse } => {
                scan.reverse = reverse;
                match scan.explode(leading, MERGE_MAX) {
                    Some(scans) => Plan { access: Access::Merge(scans), residual, sorted: true, covered: false },
                    None => Plan { access: Access::Index(scan), residual, sorted: false, covered },
                }
            }
            Provides::No => Plan { access: Access::Index(scan), residual, sorted: false, covered },
        },
        _ => Plan { access: Access::Index(scan), residual, sorted: true, covered },
    }
}

/// True if every field can be rebuilt from the index's keys.
pub fn covers(scan: &IndexScan, fields: &[String]) -> bool {
    let index = &scan.index;
    let multikey = index.multikey();
    let is_there = |field: &String| {
        let mut parts = index.spec.parts.iter().zip(&scan.parts).enumerate();
        // A collated key does not tell which of the strings that are equal under the collation it stands for, and
        // values of an array cannot be put together from single keys; a number may be the place of an element.
        parts.any(|(i, (part, bounds))| {
            part.path.as_str() == field
                && (multikey & (1 << i) == 0 || scan.distinct.is_some_and(|distinct| distinct.parts == i + 1))
                && !part.path.parts().iter().any(|part| part.index().is_some())
                && (index.spec.collation.is_none() || !bounds.may_hold_strings())
        })
    };
    // A wildcard key does not tell absence.
    !index.spec.is_wildcard() && fields.iter().all(is_there)
}

/// All of an index, in order.
pub fn whole(index: &Arc<Index>) -> IndexScan {
    let parts = if index.spec.is_wildcard() {
        vec![PartBounds::everything(IndexKind::Ascending); 2]
    } else {
        index.spec.parts.iter().map(|p| PartBounds::everything(p.kind)).collect()
    };
    IndexScan { index: index.clone(), parts, reverse: false, exact: false, run: None, distinct: None }
}

/// An index whose order is the sort's, read from end to end.
fn sort_scan<'r>(indexes: &[&'r Arc<Index>], request: &Request<'r>, conditions: &Conditions<'r>) -> Option<Plan> {
    let implied = |index: &'r Index, partial: &Filter| match index.spec.collator() {
        Collator::SIMPLE => implies(conditions, partial.root()),
        collated => implies(&request.conditions(request.filter.root(), collated), partial.root()),
    };
    let complete = indexes
        .iter()
        .filter(|i| !i.spec.sparse && !i.spec.is_wildcard() && i.spec.partial.as_ref().is_none_or(|p| implied(i, p)));
    let mut scans = complete.map(|index| {
        let mut scan = whole(index);
        // Nothing was asked, so nothing is left to check.
        scan.exact = request.filter.is_empty();
        finish(scan, request)
    });
    match request.wanted {
        Wanted::Sorted(_) => scans.find(|plan| plan.sorted),
        // Without a sort an index is only worth reading if the documents are not; and whoever takes the first few
        // means those that were inserted first.
        _ if request.limit.is_some() => None,
        _ => scans.find(|plan| plan.covered),
    }
}

/// A scan for each branch of a disjunction, if every branch has one.
fn union<'r>(
    request: &Request<'r>,
    indexes: &[&'r Arc<Index>],
    conditions: &Conditions<'r>,
    view: &View,
) -> Result<Option<Plan>> {
    for branches in &conditions.ors {
        let mut scans = Vec::new();
        for branch in branches.iter() {
            match branch_scans(branch, request, indexes, view)? {
                Some(found) => scans.extend(found),
                None => {
                    scans.clear();
                    break;
                }
            }
        }
        if scans.is_empty() {
            continue;
        }
        if let Wanted::Sorted(sort) = request.wanted
            && scans.len() <= MERGE_MAX
        {
            let directions: Vec<Provides> = scans.iter().map(|scan| provides(scan, sort)).collect();
            if directions.iter().all(|p| matches!(p, Provides::Directly { .. })) {
                for (scan, direction) in scans.iter_mut().zip(directions) {
                    scan.reverse = direction == Provides::Directly { reverse: true };
                }
                return Ok(Some(Plan { access: Access::Merge(scans), residual: true, sorted: true, covered: false }));
            }
        }
        let sorted = !matches!(request.wanted, Wanted::Sorted(_));
        // Where nothing else is asked and every branch says it all, a count needs no documents.
        let alone = conditions.all.is_empty() && !conditions.others && conditions.ors.len() == 1;
        let residual = !alone || scans.iter().any(|scan| !scan.exact);
        let covered = !residual && sorted && request.fields.is_some_and(<[String]>::is_empty);
        return Ok(Some(Plan { access: Access::Union(scans), residual, sorted, covered }));
    }
    Ok(None)
}

/// The scans that find every match of one branch.
fn branch_scans<'r>(
    branch: &'r Node,
    request: &Request<'r>,
    indexes: &[&'r Arc<Index>],
    view: &View,
) -> Result<Option<Vec<IndexScan>>> {
    let conditions = request.conditions(branch, Collator::SIMPLE);
    let mut candidates = Vec::new();
    for index in indexes {
        candidates.extend(scans_for(index, branch, &conditions, request, request.hint.is_some()));
    }
    let mut best: Option<(u64, IndexScan)> = None;
    for scan in candidates {
        let entries = if best.is_none() { 0 } else { estimate(view, &scan, ESTIMATE_MAX)? };
        match &mut best {
            None => best = Some((estimate(view, &scan, ESTIMATE_MAX)?, scan)),
            Some((fewest, _)) if entries < *fewest => best = Some((entries, scan)),
            Some(_) => {}
        }
    }
    if let Some((_, scan)) = best {
        return Ok(Some(vec![scan]));
    }
    // A disjunction inside the branch.
    let Some(inner) = conditions.ors.first() else { return Ok(None) };
    let mut scans = Vec::new();
    for node in inner.iter() {
        match branch_scans(node, request, indexes, view)? {
            Some(found) => scans.extend(found),
            None => return Ok(None),
        }
    }
    Ok(Some(scans))
}
