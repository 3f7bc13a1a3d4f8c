//! Pipelines as a whole; single stages are tested by their conformance files.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use std::sync::atomic::Ordering;

use espalier_value::{ArrayBuf, DocBuf, RawDoc, Result};

use super::{ALL, Pipeline, Run};
use crate::context::Context;
use crate::expression::Scope;
use crate::stream::Buffered;
use crate::testing::{MemorySpill, array, doc, docs, drain, same};

fn parse(pipeline: &str) -> Result<Pipeline> {
    Pipeline::parse(array(pipeline).as_raw(), &Scope::default(), &Context::default())
}

fn run(input: &str, pipeline: &str) -> Result<ArrayBuf> {
    let run = Run::new(Arc::new(Context::new(0, 1)));
    drain(parse(pipeline)?.run_all(Box::new(Buffered::new(docs(input))), &run)?)
}

#[test]
fn list_is_sorted() {
    assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
}

#[test]
fn stages_follow_each_other() {
    let input = "[{_id: 1, a: 5}, {_id: 2, a: 7}, {_id: 3, a: 9}, {_id: 4, a: 1}]";
    let pipeline = "[{$match: {a: {$gt: 4}}}, {$skip: 1}, {$limit: 1}, {$project: {_id: 0, b: '$a'}}]";
    same(run(input, pipeline).unwrap().as_raw(), "[{b: 7}]");
    same(run(input, "[{$match: {a: 5}}, {$count: 'n'}]").unwrap().as_raw(), "[{n: 1}]");
    same(run(input, "[{$match: {a: 6}}, {$count: 'n'}]").unwrap().as_raw(), "[]");
}

#[test]
fn a_store_gets_the_beginning() {
    let pipeline = parse(
        "[{$match: {a: 1}}, {$match: {b: 2}}, {$skip: 5}, {$limit: 10}, {$skip: 2}, {$match: {c: 1}}, {$project: {x: 1}}]",
    )
    .unwrap();
    let leading = pipeline.leading();
    assert_eq!(leading.filter.source(), doc("{$and: [{a: 1}, {b: 2}]}").as_raw());
    assert_eq!((leading.skip, leading.limit), (7, Some(8)));
    let needs: Vec<&str> = leading.needs.as_ref().unwrap().iter().map(|p| p.as_str()).collect();
    assert_eq!(needs, ["_id", "c", "x"]);
    assert_eq!(pipeline.rest().len(), 2);
}

#[test]
fn one_document_at_a_time() {
    let pipeline = parse("[{$set: {b: '$a'}}, {$unset: 'a'}, {$replaceWith: {c: '$$ROOT'}}]").unwrap();
    let mut out = doc("{left: 'over'}");
    pipeline.apply_one(doc("{_id: 1, a: 2}").as_raw(), &Context::default(), &mut out).unwrap();
    assert_eq!(out, doc("{c: {_id: 1, b: 2}}"));
    assert!(pipeline.is_transform());
    assert!(!parse("[{$match: {}}]").unwrap().is_transform());
}

#[test]
fn errors() {
    let code = |pipeline: &str| parse(pipeline).unwrap_err().code().0;
    assert_eq!(code("[{$foo: 1}]"), 40324);
    assert_eq!(code("[{}]"), 40323);
    assert_eq!(code("[5]"), 14);
    assert_eq!(code("[{$limit: 0}]"), 15958);
    assert_eq!(code("[{$search: {}}]"), 115);
}

#[test]
fn unwinding() {
    let input = "[{_id: 1, a: [1, 2], z: 0}, {_id: 2, a: []}, {_id: 3, a: null}, {_id: 4}, {_id: 5, a: 'x'}]";
    let plain = "[{_id: 1, a: 1, z: 0}, {_id: 1, a: 2, z: 0}, {_id: 5, a: 'x'}]";
    same(run(input, "[{$unwind: '$a'}]").unwrap().as_raw(), plain);
    let preserve = "[{$unwind: {path: '$a', preserveNullAndEmptyArrays: true}}, {$skip: 2}]";
    same(run(input, preserve).unwrap().as_raw(), "[{_id: 2}, {_id: 3, a: null}, {_id: 4}, {_id: 5, a: 'x'}]");
    let nested = "[{_id: 1, c: {d: [[1], {e: 2}], f: 5}, g: 1}]";
    same(
        run(nested, "[{$unwind: '$c.d'}]").unwrap().as_raw(),
        "[{_id: 1, c: {d: [1], f: 5}, g: 1}, {_id: 1, c: {d: {e: 2}, f: 5}, g: 1}]",
    );
}

/// Numbers in a scrambled order, some of them twice; `seq` tells equal ones apart.
fn scrambled(count: i64) -> Vec<DocBuf> {
    (0..count)
        .map(|i| espalier_value::doc! { "n": (i * 7919) % (count / 2), "seq": i, "pad": "x".repeat(40).as_str() })
        .collect()
}

fn is_sorted_stably(docs: &ArrayBuf) -> bool {
    let rank = |doc: RawDoc<'_>| {
        let whole = |name| doc.get(name).and_then(espalier_value::number::Number::of).unwrap().to_i64_clamped();
        (whole("n"), whole("seq"))
    };
    let ranks: Vec<_> = docs.as_raw().iter().map(|v| rank(v.as_doc().unwrap())).collect();
    ranks.is_sorted()
}

#[test]
fn sorting_in_memory_and_on_disk() {
    let spill = MemorySpill::default();
    let files = spill.files.clone();
    let mut run = Run::new(Arc::new(Context::new(0, 1)));
    let all =
        |pipeline: &str, run: &Run| drain(parse(pipeline)?.run_all(Box::new(Buffered::new(scrambled(20_000))), run)?);
    let in_memory = all("[{$sort: {n: 1}}]", &run).unwrap();
    assert_eq!(in_memory.len(), 20_000);
    assert!(is_sorted_stably(&in_memory));

    run.limits.stage_memory_bytes_max = 10_000;
    assert_eq!(all("[{$sort: {n: 1}}]", &run).unwrap_err().code().0, 292);

    run.spill = Some(Arc::new(spill));
    let on_disk = all("[{$sort: {n: 1}}]", &run).unwrap();
    assert_eq!(on_disk.as_raw(), in_memory.as_raw());
    assert!(files.load(Ordering::Relaxed) > 128, "so many that they are merged in between");

    let before = files.load(Ordering::Relaxed);
    run.limits.stage_memory_bytes_max = 1 << 20;
    let first = all("[{$sort: {n: 1}}, {$skip: 5}, {$limit: 10}]", &run).unwrap();
    assert_eq!(files.load(Ordering::Relaxed), before, "only what is wanted is held");
    let expected: ArrayBuf = in_memory.as_raw().iter().skip(5).take(10).collect();
    assert_eq!(first.as_raw(), expected.as_raw());
    run.limits.stage_memory_bytes_max = 50_000;
    let many = all("[{$sort: {n: 1}}, {$limit: 3000}]", &run).unwrap();
    let expected: ArrayBuf = in_memory.as_raw().iter().take(3000).collect();
    assert_eq!(many.as_raw(), expected.as_raw());
}

#[test]
fn samples_are_of_the_input_and_differ() {
    let run = Run::new(Arc::new(Context::new(0, 7)));
    let sample = |size: usize| {
        let pipeline = parse(&format!("[{{$sample: {{size: {size}}}}}, {{$project: {{seq: 1}}}}]")).unwrap();
        drain(pipeline.run_all(Box::new(Buffered::new(scrambled(5000))), &run).unwrap()).unwrap()
    };
    let (one, other) = (sample(100), sample(100));
    assert_eq!(one.len(), 100);
    assert_ne!(one.as_raw(), other.as_raw());
    let mut distinct: Vec<Vec<u8>> = one.as_raw().iter().map(espalier_value::key::of).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 100);
    assert_eq!(sample(0).len(), 0);
    assert_eq!(sample(9000).len(), 5000);
}

#[test]
fn facets_read_the_same_input_from_memory_and_disk() {
    let mut run = Run::new(Arc::new(Context::new(0, 1)));
    let facets = |run: &Run| {
        let pipeline = parse(
            "[{$facet: {n: [{$count: 'n'}], first: [{$sort: {seq: 1}}, {$limit: 2}, {$project: {seq: 1}}],
            sum: [{$group: {_id: null, s: {$sum: '$seq'}}}]}}]",
        )?;
        drain(pipeline.run_all(Box::new(Buffered::new(scrambled(1000))), run)?)
    };
    let in_memory = facets(&run).unwrap();
    let expected = doc("{n: [{n: 1000}], sum: [{_id: null, s: 499500}]}");
    let found = in_memory.as_raw().get(0).and_then(espalier_value::ValueRef::as_doc).unwrap();
    assert_eq!(found.elem("n").unwrap().raw(), expected.as_raw().elem("n").unwrap().raw());
    assert_eq!(found.get("first").unwrap().as_array().unwrap().len(), 2);

    run.limits.stage_memory_bytes_max = 20_000;
    assert_eq!(facets(&run).unwrap_err().code().0, 292);
    let spill = MemorySpill::default();
    let files = spill.files.clone();
    run.spill = Some(Arc::new(spill));
    assert_eq!(facets(&run).unwrap().as_raw(), in_memory.as_raw());
    assert_eq!(files.load(Ordering::Relaxed), 1);
}
