//! The part of a pipeline that a store does by itself, and what the rest reads: found from the stages, once.

use std::sync::Arc;

use espalier_value::{ArrayBuf, DocBuf, Path, Result};

use super::{Group, Parser, Pushdown, Stage};
use crate::expression::{Deps, Scope};
use crate::filter::{Filter, Node};
use crate::sort::Sort;

/// What to ask of the store: filter, then sort, then skip, then limit.
#[derive(Clone, Debug)]
pub struct Leading {
    pub filter: Arc<Filter>,
    pub sort: Option<Arc<Sort>>,
    pub skip: u64,
    /// `None`: no limit. Zero is possible, and means no documents.
    pub limit: Option<u64>,
    /// The paths that the rest of the pipeline reads; `None` if it reads whole documents.
    pub needs: Option<Vec<Path>>,
    /// The `$group` that comes next: documents may come as what they add up to in it.
    pub group: Option<Arc<Group>>,
    /// Of documents with the same value at this path, the rest of the pipeline looks at the first only.
    pub distinct: Option<Path>,
    /// How many stages this stands for.
    pub(super) stages: usize,
}

impl Leading {
    /// All documents that match.
    pub(super) fn matching(filter: Arc<Filter>) -> Leading {
        Leading { filter, sort: None, skip: 0, limit: None, needs: None, group: None, distinct: None, stages: 0 }
    }

    /// True if it is a filter and nothing else.
    pub(super) fn is_filter(&self) -> bool {
        self.sort.is_none() && self.skip == 0 && self.limit.is_none()
    }
}

pub(super) fn find(stages: &[Arc<dyn Stage>], parser: &Parser<'_>) -> Result<Leading> {
    let mut filters: Vec<&Arc<Filter>> = Vec::new();
    let (mut sort, mut skip, mut limit, mut taken) = (None, 0u64, None::<u64>, 0);
    for stage in stages {
        match stage.pushdown() {
            // A filter may go before a sort: what it keeps comes out in the same order.
            Some(Pushdown::Filter(filter)) if skip == 0 && limit.is_none() => filters.push(filter),
            Some(Pushdown::Sort(by, first)) if sort.is_none() && skip == 0 && limit.is_none() => {
                sort = Some(by.clone());
                limit = first;
            }
            Some(Pushdown::Skip(count)) => {
                skip = skip.saturating_add(count);
                limit = limit.map(|limit| limit.saturating_sub(count));
            }
            Some(Pushdown::Limit(count)) => limit = Some(limit.map_or(count, |limit| limit.min(count))),
            _ => break,
        }
        taken += 1;
    }
    let needs = needs(&stages[taken..]);
    let needs = needs.paths().map(|paths| {
        let mut top: Vec<Path> = Vec::new();
        for path in paths.map(Path::new) {
            if !top.iter().any(|above| above.is_prefix_of(&path)) {
                top.push(path);
            }
        }
        top
    });
    let group = stages.get(taken).and_then(|stage| stage.clone().group());
    let next = stages.get(taken).filter(|_| skip == 0 && limit.is_none());
    let distinct = next.and_then(|stage| stage.first_of()).cloned();
    Ok(Leading { filter: merge(&filters, parser.scope)?, sort, skip, limit, needs, group, distinct, stages: taken })
}

/// What a run of stages reads of its input.
pub(super) fn needs(stages: &[Arc<dyn Stage>]) -> Deps {
    stages.iter().rev().fold(Deps::whole(), |after, stage| stage.needs(&after))
}

/// One filter for all of them.
pub(super) fn merge(filters: &[&Arc<Filter>], scope: &Scope) -> Result<Arc<Filter>> {
    match filters {
        [] => Ok(Arc::new(Filter::empty())),
        [filter] => Ok((*filter).clone()),
        filters => {
            let all: ArrayBuf = filters.iter().map(|filter| filter.source().into()).collect();
            let mut merged = DocBuf::new();
            merged.append("$and", &all);
            Ok(Arc::new(Filter::parse_deferring(merged.as_raw(), scope)?))
        }
    }
}

/// Adds what a filter reads.
pub(crate) fn collect_filter(node: &Node, deps: &mut Deps) {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.iter().for_each(|node| collect_filter(node, deps));
        }
        Node::Not(node) => collect_filter(node, deps),
        // A number in the path may be an array index, which is no field: the whole top-level field is read.
        Node::Leaf(leaf) => deps.add(leaf.path.first()),
        Node::Expr(expression) => deps.merge(&expression.dependencies()),
        Node::Whole(_) => deps.add_whole(),
    }
}
