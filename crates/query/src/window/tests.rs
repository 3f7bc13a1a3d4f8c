//! The list of functions, and windows over whole streams; single functions are tested by their conformance files.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use espalier_value::number::Number;
use espalier_value::{ArrayBuf, DocBuf, Result, doc};

use super::ALL;
use crate::context::Context;
use crate::expression::Scope;
use crate::stage::{Pipeline, Run};
use crate::stream::Buffered;
use crate::testing::{MemorySpill, array, drain};

#[test]
fn list_is_sorted() {
    assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
}

fn numbers(count: i64) -> Vec<DocBuf> {
    (0..count).map(|i| doc! { "p": i % 7, "t": (i * 7919) % count, "v": (i * 31) % 101 }).collect()
}

fn run(docs: Vec<DocBuf>, pipeline: &str, run: &Run) -> Result<ArrayBuf> {
    let parsed = Pipeline::parse(array(pipeline).as_raw(), &Scope::default(), &Context::default())?;
    drain(parsed.run_all(Box::new(Buffered::new(docs)), run)?)
}

fn field(docs: &ArrayBuf, name: &str) -> Vec<i64> {
    let whole = |value: espalier_value::ValueRef<'_>| {
        value.as_doc().unwrap().get(name).and_then(Number::of).unwrap().to_i64_clamped()
    };
    docs.as_raw().iter().map(whole).collect()
}

/// What a window gives equals what looking at each document of it gives.
#[test]
fn sliding_equals_computing_anew() {
    let context = Run::new(Arc::new(Context::new(0, 1)));
    for (low, high) in [(-3i64, 0i64), (0, 4), (-5, 5), (2, 6), (-6, -2), (0, 0)] {
        let pipeline = format!(
            "[{{$setWindowFields: {{sortBy: {{t: 1}}, output: {{
                s: {{$sum: '$v', window: {{documents: [{low}, {high}]}}}},
                lo: {{$min: '$v', window: {{documents: [{low}, {high}]}}}},
                hi: {{$max: '$v', window: {{range: [{low}, {high}]}}}},
                n: {{$count: {{}}, window: {{documents: [{low}, {high}]}}}}}}}}}},
              {{$set: {{lo: {{$ifNull: ['$lo', -1]}}, hi: {{$ifNull: ['$hi', -1]}}}}}}]"
        );
        let found = run(numbers(500), &pipeline, &context).unwrap();
        let values = field(&found, "v");
        for (name, of) in [
            ("s", (|w| w.iter().sum()) as fn(&[i64]) -> i64),
            ("lo", |w| w.iter().min().copied().unwrap_or(-1)),
            ("hi", |w| w.iter().max().copied().unwrap_or(-1)),
            ("n", |w| w.len() as i64),
        ] {
            let expected: Vec<i64> = (0..values.len() as i64)
                .map(|at| {
                    let from = (at + low).clamp(0, values.len() as i64) as usize;
                    let to = (at + high + 1).clamp(0, values.len() as i64) as usize;
                    of(&values[from..to.max(from)])
                })
                .collect();
            assert_eq!(field(&found, name), expected, "{name} of [{low}, {high}]");
        }
    }
}

#[test]
fn documents_wait_on_disk() {
    let mut context = Run::new(Arc::new(Context::new(0, 1)));
    let pipeline = "[{$setWindowFields: {partitionBy: '$p', sortBy: {t: 1}, output: {total: {$sum: '$v'}}}}]";
    let in_memory = run(numbers(5000), pipeline, &context).unwrap();
    assert_eq!(in_memory.len(), 5000);

    context.limits.stage_memory_bytes_max = 8000;
    assert_eq!(run(numbers(5000), pipeline, &context).unwrap_err().code().0, 292);

    let spill = MemorySpill::default();
    let files = spill.files.clone();
    context.spill = Some(Arc::new(spill));
    assert_eq!(run(numbers(5000), pipeline, &context).unwrap().as_raw(), in_memory.as_raw());
    assert!(files.load(Ordering::Relaxed) > 10);
}

/// What functions hold cannot go to disk.
#[test]
fn functions_have_a_limit() {
    let mut context = Run::new(Arc::new(Context::new(0, 1)));
    context.limits.stage_memory_bytes_max = 100_000;
    context.spill = Some(Arc::new(MemorySpill::default()));
    let pipeline = "[{$setWindowFields: {sortBy: {t: 1}, output: {all: {$push: '$v'}}}}]";
    assert_eq!(run(numbers(20_000), pipeline, &context).unwrap_err().code().0, 5414201);
    let narrow = "[{$setWindowFields: {sortBy: {t: 1}, output: {s: {$sum: '$v', window: {documents: [-9, 9]}}}}}]";
    assert_eq!(run(numbers(20_000), narrow, &context).unwrap().len(), 20_000);
}
