//! `explain`: the plan in MongoDB's shape, and what running it cost.

use std::sync::Arc;

use espalier_query::Stream;
use espalier_query::filter::{Interval, Node};
use espalier_store::{Cursor, Find, Namespace, Verbosity};
use espalier_value::{ArrayBuf, DocBuf, RawDoc, Result, ValueRef, collation};

use crate::catalog::Collection;
use crate::exec;
use crate::plan::{Access, IndexScan, Plan};
use crate::txn::Txn;

pub(crate) fn explain(
    txn: &Txn,
    ns: &Namespace,
    collection: Option<&Arc<Collection>>,
    plan: Option<&Plan>,
    find: &Find,
    verbosity: Verbosity,
) -> Result<DocBuf> {
    let mut out = DocBuf::new();
    let winning = tree(plan, find, None);
    out.append_doc("queryPlanner", |planner| {
        planner
            .append("namespace", &ns.to_string())
            .append("indexFilterSet", false)
            .append("parsedQuery", &find.filter.describe());
        if let Some(collation) = &find.context.collation {
            planner.append("collation", &collation.listed());
        }
        planner
            .append("maxIndexedOrSolutionsReached", false)
            .append("maxIndexedAndSolutionsReached", false)
            .append("maxScansToExplodeReached", false)
            .append("winningPlan", &winning)
            .append("rejectedPlans", &ArrayBuf::new());
    });
    if verbosity == Verbosity::QueryPlanner {
        return Ok(out);
    }
    let started = std::time::Instant::now();
    let mut run = Run::default();
    if let (Some(collection), Some(plan)) = (collection, plan) {
        let (view, _) = txn.captured();
        let mut cursor = exec::open(view, collection, plan, find, txn.core().sort_run(find))?;
        while cursor.advance()? {
            run.returned += 1;
        }
        (run.keys, run.docs) = (cursor.keys_examined(), cursor.docs_examined());
    }
    run.millis = started.elapsed().as_millis() as i64;
    let stages = tree(plan, find, Some(&run));
    out.append_doc("executionStats", |stats| {
        stats
            .append("executionSuccess", true)
            .append("nReturned", run.returned as i32)
            .append("executionTimeMillis", run.millis as i32)
            .append("totalKeysExamined", run.keys as i32)
            .append("totalDocsExamined", run.docs as i32)
            .append("executionStages", &stages);
        if verbosity == Verbosity::AllPlansExecution {
            stats.append("allPlansExecution", &ArrayBuf::new());
        }
    });
    Ok(out)
}

/// What a run cost.
#[derive(Default)]
struct Run {
    returned: u64,
    keys: u64,
    docs: u64,
    millis: i64,
}

/// The stages, the last one outermost.
fn tree(plan: Option<&Plan>, find: &Find, run: Option<&Run>) -> DocBuf {
    let Some(plan) = plan else {
        return stage("EOF", run, |_| {});
    };
    let filter = (plan.residual && !find.filter.is_empty()).then(|| find.filter.describe());
    let mut node = access(plan, filter.as_ref().map(DocBuf::as_raw), find, run);
    if !plan.sorted
        && let Some(sort) = &find.sort
    {
        let input = node;
        node = stage("SORT", run, |doc| {
            doc.append("sortPattern", sort.source()).append("memLimit", 104_857_600).append("type", "simple");
            if let Some(limit) = find.limit {
                doc.append("limitAmount", (limit.saturating_add(find.skip)) as i64);
            }
            doc.append("inputStage", &input);
        });
    }
    if find.skip > 0 {
        let input = node;
        node = stage("SKIP", run, |doc| {
            doc.append("skipAmount", find.skip as i64).append("inputStage", &input);
        });
    }
    if let (Some(limit), true) = (find.limit, plan.sorted || find.sort.is_none()) {
        let input = node;
        node = stage("LIMIT", run, |doc| {
            doc.append("limitAmount", limit as i64).append("inputStage", &input);
        });
    }
    if let Some(projection) = &find.projection {
        let input = node;
        let name = if plan.covered {
            "PROJECTION_COVERED"
        } else if projection.is_simple_inclusion() || projection.is_exclusion() {
            "PROJECTION_SIMPLE"
        } else {
            "PROJECTION_DEFAULT"
        };
        node = stage(name, run, |doc| {
            doc.append("transformBy", projection.source()).append("inputStage", &input);
        });
    }
    node
}

fn access(plan: &Plan, filter: Option<RawDoc<'_>>, find: &Find, run: Option<&Run>) -> DocBuf {
    let fetch = |input: DocBuf| {
        if plan.covered {
            return input;
        }
        stage("FETCH", run, |doc| {
            if let Some(filter) = filter {
                doc.append("filter", filter);
            }
            if let Some(run) = run {
                doc.append("docsExamined", run.docs as i32);
            }
            doc.append("inputStage", &input);
        })
    };
    match &plan.access {
        Access::Collection { reverse } => stage("COLLSCAN", run, |doc| {
            if let Some(filter) = filter {
                doc.append("filter", filter);
            }
            doc.append("direction", if *reverse { "backward" } else { "forward" });
            if let Some(run) = run {
                doc.append("docsExamined", run.docs as i32);
            }
        }),
        Access::Index(scan) if is_id_lookup(scan, find) && !plan.covered && filter.is_none() => {
            stage("IDHACK", run, |doc| {
                if let Some(run) = run {
                    doc.append("keysExamined", run.keys as i32).append("docsExamined", run.docs as i32);
                }
            })
        }
        Access::Index(scan) => fetch(index_scan(scan, run)),
        Access::Union(scans) => fetch(several("OR", scans, None, run)),
        Access::Merge(scans) => {
            let pattern = find.sort.as_ref().map(|s| s.source());
            fetch(several("SORT_MERGE", scans, pattern, run))
        }
    }
}

/// One document by its `_id` and nothing else, which MongoDB shows by a name of its own.
fn is_id_lookup(scan: &IndexScan, find: &Find) -> bool {
    let plain = find.hint.is_none() && find.skip == 0;
    plain && scan.index.spec.is_id() && matches!(find.filter.root(), Node::Leaf(leaf) if leaf.predicate.name() == "$eq")
}

fn several(name: &'static str, scans: &[IndexScan], sort: Option<RawDoc<'_>>, run: Option<&Run>) -> DocBuf {
    stage(name, run, |doc| {
        if let Some(sort) = sort {
            doc.append("sortPattern", sort);
        }
        doc.append_array("inputStages", |stages| {
            for scan in scans {
                stages.push(&index_scan(scan, None));
            }
        });
    })
}

fn index_scan(scan: &IndexScan, run: Option<&Run>) -> DocBuf {
    let spec = &scan.index.spec;
    let multikey = scan.index.multikey();
    stage("IXSCAN", run, |doc| {
        doc.append("keyPattern", spec.key()).append("indexName", &spec.name);
        if let Some(collation) = &spec.collation {
            doc.append("collation", &collation.listed());
        }
        doc.append("isMultiKey", multikey != 0);
        doc.append_doc("multiKeyPaths", |paths| {
            for (i, part) in spec.parts.iter().enumerate() {
                paths.append_array(part.path.as_str(), |list| {
                    if multikey & (1 << i) != 0 {
                        list.push(part.path.as_str());
                    }
                });
            }
        });
        doc.append("isUnique", spec.unique)
            .append("isSparse", spec.sparse)
            .append("isPartial", spec.partial.is_some())
            .append("indexVersion", 2)
            .append("direction", if scan.reverse { "backward" } else { "forward" });
        doc.append_doc("indexBounds", |bounds| {
            let names: Vec<String> = if spec.is_wildcard() {
                vec!["$_path".into(), "value".into()]
            } else {
                spec.parts.iter().map(|p| p.path.as_str().to_string()).collect()
            };
            for (name, part) in names.iter().zip(&scan.parts) {
                let collated = spec.collation.is_some() && name != "$_path";
                bounds.append_array(name, |list| {
                    let intervals: Vec<_> = if part.descending != scan.reverse {
                        part.source.iter().rev().map(|i| text(i, true, collated)).collect()
                    } else {
                        part.source.iter().map(|i| text(i, false, collated)).collect()
                    };
                    intervals.iter().for_each(|t| {
                        list.push(t);
                    });
                });
            }
        });
        if let Some(run) = run {
            doc.append("keysExamined", run.keys as i32);
        }
    })
}

/// `[1, 5)`, from the end it is read from.
fn text(interval: &Interval, backward: bool, collated: bool) -> String {
    let shown = |value: ValueRef<'_>| match value {
        ValueRef::String(key) if collated => format!("CollationKey(0x{})", collation::hex(key)),
        value => value.to_string(),
    };
    let (low, high) = (shown(interval.low.or_null()), shown(interval.high.or_null()));
    if backward {
        let (open, close) =
            (if interval.high_inclusive { '[' } else { '(' }, if interval.low_inclusive { ']' } else { ')' });
        return format!("{open}{high}, {low}{close}");
    }
    let (open, close) =
        (if interval.low_inclusive { '[' } else { '(' }, if interval.high_inclusive { ']' } else { ')' });
    format!("{open}{low}, {high}{close}")
}

fn stage(name: &'static str, run: Option<&Run>, fill: impl FnOnce(&mut DocBuf)) -> DocBuf {
    let mut doc = DocBuf::new();
    doc.append("stage", name);
    if let Some(run) = run {
        doc.append("nReturned", run.returned as i32).append("executionTimeMillisEstimate", run.millis as i32);
    }
    fill(&mut doc);
    doc
}
