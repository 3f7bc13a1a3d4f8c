//! `explain`: the plan in MongoDB's shape, and what running it cost.

mod scan;
mod spilling;
mod tree;

use std::sync::Arc;

use espalier_query::Stream;
use espalier_store::{Cursor, Find, Namespace, Verbosity};
use espalier_value::{ArrayBuf, DocBuf, Result};

use crate::catalog::Collection;
use crate::exec;
use crate::plan::Plan;
use crate::txn::Txn;
use crate::txn::read::known_count;
use spilling::Watched;
use tree::{Shown, tree};

/// What a run cost, stage by stage.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    returned: u64,
    /// Documents that matched, before skip and limit.
    matched: u64,
    keys: u64,
    docs: u64,
    millis: i64,
    /// Whether all there is was read.
    ended: bool,
    /// Documents that were sorted, in bytes, and how often they went to disk.
    sorted_bytes: u64,
    spills: u64,
}

pub(crate) fn explain(
    txn: &Txn,
    ns: &Namespace,
    collection: Option<&Arc<Collection>>,
    plan: Option<&Plan>,
    find: &Find,
    verbosity: Verbosity,
) -> Result<DocBuf> {
    let mut out = DocBuf::new();
    let known = collection.map(|collection| known_count(txn, collection, find)).transpose()?.flatten();
    let winning = match (known, plan) {
        (Some(_), _) => Shown::Known,
        (None, Some(plan)) => Shown::Plan(plan),
        (None, None) => Shown::Nothing,
    };
    out.append_doc("queryPlanner", |planner| {
        planner.append("namespace", &ns.to_string()).append("indexFilterSet", false);
        if known.is_none() {
            planner.append("parsedQuery", &find.filter.describe());
        }
        if let Some(collation) = &find.context.collation {
            planner.append("collation", &collation.listed());
        }
        planner
            .append("maxIndexedOrSolutionsReached", false)
            .append("maxIndexedAndSolutionsReached", false)
            .append("maxScansToExplodeReached", false)
            .append("winningPlan", &tree(winning, find, None))
            .append("rejectedPlans", &ArrayBuf::new());
    });
    if verbosity == Verbosity::QueryPlanner {
        return Ok(out);
    }
    let started = std::time::Instant::now();
    let mut run = Run { ended: true, ..Run::default() };
    if let Some(count) = known {
        run.returned = count;
    } else if let (Some(collection), Some(plan)) = (collection, plan) {
        let (view, _) = txn.captured();
        let mut sorting = txn.core().sort_run(find);
        let spills = Watched::wrap(&mut sorting);
        let mut cursor = exec::open(&view, collection, plan, find, sorting)?.alone();
        while cursor.advance()? {
            run.returned += 1;
        }
        (run.keys, run.docs) = (cursor.keys_examined(), cursor.docs_examined());
        (run.matched, run.sorted_bytes) = (cursor.matches, cursor.sorted_bytes);
        run.spills = spills.count();
        // A limit ends the reading, unless everything is read for a sort.
        run.ended = find.limit.is_none_or(|limit| run.returned < limit) || !plan.sorted && find.sort.is_some();
        if run.ended && tree::is_count_scan(plan, find) {
            // The look that finds nothing more counts.
            run.keys += 1;
        }
    }
    run.millis = started.elapsed().as_millis() as i64;
    let stages = tree(winning, find, Some(&run));
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
