//! The stages of a plan as MongoDB shows them, the last one outermost.

use espalier_query::filter::Node;
use espalier_store::Find;
use espalier_value::number::Number;
use espalier_value::{DocBuf, RawDoc, ValueRef};

use super::Run;
use super::scan::{count_scan, index_scan};
use crate::plan::{Access, IndexScan, Plan};
use crate::txn::read::FAST_COUNT;

/// What is shown.
#[derive(Clone, Copy)]
pub enum Shown<'p> {
    /// There is no collection.
    Nothing,
    /// The number of documents is known, and no more is asked for.
    Known,
    Plan(&'p Plan),
}

pub fn tree(shown: Shown<'_>, find: &Find, run: Option<&Run>) -> DocBuf {
    let returned = run.map_or(0, |run| run.returned);
    let plan = match shown {
        Shown::Nothing => return stage("EOF", run, returned, |_| {}),
        Shown::Known => return stage(FAST_COUNT, run, returned, |_| {}),
        Shown::Plan(plan) => plan,
    };
    let filter = (plan.residual && !find.filter.is_empty()).then(|| find.filter.describe());
    let mut node = access(plan, filter.as_ref().map(DocBuf::as_raw), find, run);
    if !plan.sorted
        && let Some(sort) = &find.sort
    {
        let input = node;
        let kept = find.limit.map(|limit| limit.saturating_add(find.skip));
        let given = run.map_or(0, |run| kept.map_or(run.matched, |kept| kept.min(run.matched)));
        node = stage("SORT", run, given, |doc| {
            doc.append("sortPattern", sort.source()).append("memLimit", 104_857_600);
            if let Some(kept) = kept {
                doc.append("limitAmount", narrow(kept));
            }
            doc.append("type", "simple");
            if let Some(run) = run {
                doc.append("totalDataSizeSorted", run.sorted_bytes as i64)
                    .append("usedDisk", run.spills > 0)
                    .append("spills", run.spills as i64);
            }
            doc.append("inputStage", &input);
        });
    }
    if find.skip > 0 {
        let input = node;
        node = stage("SKIP", run, returned, |doc| {
            doc.append("skipAmount", narrow(find.skip)).append("inputStage", &input);
        });
    }
    let limited = find.limit.filter(|_| plan.sorted || find.sort.is_none());
    let limit = |node: DocBuf| match limited {
        None => node,
        Some(limit) => ended("LIMIT", run, returned, true, |doc| {
            doc.append("limitAmount", narrow(limit)).append("inputStage", &node);
        }),
    };
    match &find.projection {
        Some(projection) => {
            let node = limit(node);
            let name = if plan.covered && projection.is_simple_inclusion() && !projection.is_dotted() {
                "PROJECTION_COVERED"
            } else if !projection.is_dotted() && (projection.is_simple_inclusion() || projection.is_exclusion()) {
                "PROJECTION_SIMPLE"
            } else {
                "PROJECTION_DEFAULT"
            };
            stage(name, run, returned, |doc| {
                doc.append("transformBy", projection.source()).append("inputStage", &node);
            })
        }
        None => limit(reduced(node, plan, find, run)),
    }
}

/// A count in the narrowest type, as MongoDB writes it.
fn narrow(count: u64) -> ValueRef<'static> {
    Number::narrowest(i64::try_from(count).unwrap_or(i64::MAX)).to_value()
}

/// Where no more than some fields are looked at afterwards, MongoDB takes the others away.
fn reduced(input: DocBuf, plan: &Plan, find: &Find, run: Option<&Run>) -> DocBuf {
    let is_distinct = matches!(&plan.access, Access::Index(scan) if scan.distinct.is_some());
    let Some(needs) = find.needs.as_ref().filter(|needs| !needs.is_empty()) else { return input };
    // The values of `distinct` are taken from whatever comes, and so are the documents that begin a group.
    let whole = find.distinct.as_ref().is_some_and(|distinct| !distinct.missing) || is_distinct;
    let all_of_index = is_distinct && find.filter.is_empty() && find.sort.is_none();
    if whole && !plan.covered && !all_of_index {
        return input;
    }
    let dotted = needs.iter().any(|path| path.contains('.'));
    let name = match (dotted, plan.covered) {
        (true, _) => "PROJECTION_DEFAULT",
        (false, true) => "PROJECTION_COVERED",
        (false, false) => "PROJECTION_SIMPLE",
    };
    stage(name, run, run.map_or(0, |run| run.returned), |doc| {
        doc.append_doc("transformBy", |transform| {
            if find.distinct.as_ref().is_some_and(|distinct| !distinct.missing) {
                return;
            }
            needs.iter().for_each(|path| {
                transform.append(path, 1);
            });
            if !needs.iter().any(|path| path == "_id" || path.starts_with("_id.")) {
                transform.append("_id", 0);
            }
        });
        doc.append("inputStage", &input);
    })
}

fn access(plan: &Plan, filter: Option<RawDoc<'_>>, find: &Find, run: Option<&Run>) -> DocBuf {
    let matched = run.map_or(0, |run| run.matched);
    let given = run.map_or(0, |run| if plan.covered { run.matched } else { run.docs });
    let fetch = |input: DocBuf| {
        if plan.covered {
            return input;
        }
        filtered("FETCH", filter, run, matched, |doc| {
            if let Some(run) = run {
                doc.append("docsExamined", run.docs as i32).append("alreadyHasObj", 0);
            }
            doc.append("inputStage", &input);
        })
    };
    match &plan.access {
        Access::Collection { reverse } => filtered("COLLSCAN", filter, run, matched, |doc| {
            doc.append("direction", if *reverse { "backward" } else { "forward" });
            if let Some(run) = run {
                doc.append("docsExamined", run.docs as i32);
            }
        }),
        Access::Index(scan) if is_id_lookup(scan, find) && !plan.covered && filter.is_none() => {
            stage("IDHACK", run, matched, |doc| {
                if let Some(run) = run {
                    doc.append("keysExamined", run.keys as i32).append("docsExamined", run.docs as i32);
                }
            })
        }
        Access::Index(scan) if is_count_scan(plan, find) => count_scan(scan, run, given),
        Access::Index(scan) => fetch(index_scan(scan, run, given)),
        Access::Union(scans) => fetch(several("OR", scans, None, run, given)),
        Access::Merge(scans) => {
            let pattern = find.sort.as_ref().map(|s| s.source());
            fetch(several("SORT_MERGE", scans, pattern, run, given))
        }
    }
}

/// One run of entries, of which nothing is needed but their number.
pub fn is_count_scan(plan: &Plan, find: &Find) -> bool {
    let Access::Index(scan) = &plan.access else { return false };
    let single = !scan.is_empty() && scan.run.is_none() && scan.contiguous().is_some() && !scan.reverse;
    plan.covered && find.is_count() && single && !scan.index.spec.is_wildcard() && scan.distinct.is_none()
}

/// One document by its `_id` and nothing else, which MongoDB shows by a name of its own.
fn is_id_lookup(scan: &IndexScan, find: &Find) -> bool {
    let plain = find.hint.is_none() && find.skip == 0 && scan.distinct.is_none();
    plain && scan.index.spec.is_id() && matches!(find.filter.root(), Node::Leaf(leaf) if leaf.predicate.name() == "$eq")
}

fn several(name: &'static str, scans: &[IndexScan], sort: Option<RawDoc<'_>>, run: Option<&Run>, given: u64) -> DocBuf {
    stage(name, run, given, |doc| {
        if let Some(sort) = sort {
            doc.append("sortPattern", sort);
        }
        doc.append_array("inputStages", |stages| {
            for scan in scans {
                stages.push(&index_scan(scan, None, 0));
            }
        });
    })
}

/// A stage with what it gave.
pub fn stage(name: &'static str, run: Option<&Run>, given: u64, fill: impl FnOnce(&mut DocBuf)) -> DocBuf {
    filtered(name, None, run, given, fill)
}

fn filtered(
    name: &'static str,
    filter: Option<RawDoc<'_>>,
    run: Option<&Run>,
    given: u64,
    fill: impl FnOnce(&mut DocBuf),
) -> DocBuf {
    let is_end = run.is_some_and(|run| run.ended);
    let mut doc = begun(name, filter, run, given, is_end);
    fill(&mut doc);
    doc
}

fn ended(name: &'static str, run: Option<&Run>, given: u64, is_end: bool, fill: impl FnOnce(&mut DocBuf)) -> DocBuf {
    let mut doc = begun(name, None, run, given, is_end);
    fill(&mut doc);
    doc
}

fn begun(name: &'static str, filter: Option<RawDoc<'_>>, run: Option<&Run>, given: u64, is_end: bool) -> DocBuf {
    let mut doc = DocBuf::new();
    doc.append("stage", name);
    if let Some(filter) = filter {
        doc.append("filter", filter);
    }
    if let Some(run) = run {
        doc.append("nReturned", given as i32)
            .append("executionTimeMillisEstimate", run.millis as i32)
            .append("advanced", given as i32)
            .append("isEOF", i32::from(is_end));
    }
    doc
}
