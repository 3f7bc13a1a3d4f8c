//! Groups in memory and on disk give the same.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use espalier_value::{ArrayBuf, DocBuf, Result, doc};

use super::super::{Pipeline, Run};
use crate::context::Context;
use crate::expression::Scope;
use crate::stream::Buffered;
use crate::testing::{MemorySpill, array, docs, drain, same};

fn group(input: Vec<DocBuf>, pipeline: &str, run: &Run) -> Result<ArrayBuf> {
    let pipeline = Pipeline::parse(array(pipeline).as_raw(), &Scope::default(), &Context::default())?;
    drain(pipeline.run_all(Box::new(Buffered::new(input)), run)?)
}

#[test]
fn numbers_of_all_types_and_missing_are_keys() {
    let run = Run::new(Arc::new(Context::new(0, 1)));
    let input = "[{k: 1, x: 1}, {k: 1.0, x: 2}, {k: null, x: 3}, {x: 4}, {k: 'a', x: 5}]";
    let found = group(docs(input), "[{$group: {_id: '$k', sum: {$sum: '$x'}, n: {$count: {}}}}]", &run).unwrap();
    same(found.as_raw(), "[{_id: 1, sum: 3, n: 2}, {_id: null, sum: 7, n: 2}, {_id: 'a', sum: 5, n: 1}]");
    let found = group(docs(input), "[{$sortByCount: '$k'}, {$limit: 1}]", &run).unwrap();
    same(found.as_raw(), "[{_id: 1, count: 2}]");
}

#[test]
fn on_disk_as_in_memory() {
    let input = || -> Vec<DocBuf> {
        (0..6_000i32).map(|i| doc! { "k": (i * 7919) % 1000, "x": i, "s": format!("s{i}").as_str() }).collect()
    };
    let pipeline =
        "[{$group: {_id: {k: '$k'}, sum: {$sum: '$x'}, avg: {$avg: '$x'}, min: {$min: '$s'}, max: {$max: '$x'},
        first: {$first: '$s'}, last: {$last: '$s'}, all: {$push: '$x'}, set: {$addToSet: {$mod: ['$x', 2]}},
        top: {$topN: {n: 2, sortBy: {x: -1}, output: '$x'}}, dev: {$stdDevPop: '$x'}, n: {$count: {}}}},
        {$sort: {_id: 1}}]";
    let mut run = Run::new(Arc::new(Context::new(0, 1)));
    let in_memory = group(input(), pipeline, &run).unwrap();
    assert_eq!(in_memory.len(), 1000);

    run.limits.stage_memory_bytes_max = 130_000;
    assert_eq!(group(input(), pipeline, &run).unwrap_err().code().0, 292);
    let spill = MemorySpill::default();
    let files = spill.files.clone();
    run.spill = Some(Arc::new(spill));
    let on_disk = group(input(), pipeline, &run).unwrap();
    assert!(files.load(Ordering::Relaxed) > 4);
    assert_eq!(on_disk.as_raw(), in_memory.as_raw());
}
