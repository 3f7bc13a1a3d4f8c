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

/// Elements that are lent apart from their documents give what documents with the elements in them give.
#[test]
fn unwound_apart_as_unwound_whole() {
    let run = Run::new(Arc::new(Context::new(0, 1)));
    let input = "[{k: 1, a: {b: [{x: 1, y: 2}, {x: 3}, 4, null, [{x: 5}, {x: 6}], []], c: 7}, b: [1, 2, 2]},
        {k: 2, a: {b: {x: 8}, c: 9}, b: 3}, {k: 3, a: {b: []}, b: []}, {k: 4, a: {c: 1}}, {k: 5, a: [{b: [1]}], b: null},
        {a: {b: [{x: 1, y: 5}]}, k: 1, b: [[1], [2]]}]";
    let unwinds = [
        "'$a.b'",
        "'$b'",
        "{path: '$a.b', preserveNullAndEmptyArrays: true}",
        "{path: '$b', preserveNullAndEmptyArrays: true}",
        "{path: '$a.b', includeArrayIndex: 'i'}",
        "'$a'",
    ];
    let groups = [
        "{_id: '$a.b.x', n: {$sum: '$a.b.y'}, ks: {$push: '$k'}}",
        "{_id: '$b', n: {$sum: 1}, ks: {$push: '$k'}}",
        "{_id: '$k', all: {$push: '$a.b'}, b: {$push: '$b'}, c: {$push: '$a.c'}, i: {$push: '$i'}}",
        "{_id: {k: '$k', x: '$a.b.x'}, sum: {$sum: {$add: [{$ifNull: ['$a.b.x', 0]}, 1]}}}",
        "{_id: '$k', top: {$topN: {n: 9, sortBy: {'a.b.x': -1, k: 1}, output: ['$a.b', '$k']}}}",
        "{_id: '$k', top: {$topN: {n: 9, sortBy: {b: 1}, output: '$b'}}}",
        "{_id: '$k', whole: {$push: '$$ROOT'}}",
        "{_id: '$k', some: {$push: {$map: {input: '$b', as: 'e', in: ['$$e', '$k', '$a.b.x']}}}}",
        "{_id: {$isArray: '$a.b'}, whole: {$push: '$a'}}",
    ];
    for unwind in unwinds {
        for spec in groups {
            let apart = group(docs(input), &format!("[{{$unwind: {unwind}}}, {{$group: {spec}}}]"), &run);
            let whole =
                group(docs(input), &format!("[{{$unwind: {unwind}}}, {{$match: {{}}}}, {{$group: {spec}}}]"), &run);
            match (apart, whole) {
                (Ok(apart), Ok(whole)) => assert_eq!(apart.as_raw(), whole.as_raw(), "{unwind} {spec}"),
                (apart, whole) => assert_eq!(apart.unwrap_err().code(), whole.unwrap_err().code(), "{unwind} {spec}"),
            }
        }
    }
}
