//! Every stage that may take long ends soon after it is asked to, and says so when it may not use the disk.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use espalier_value::{Code, DocBuf, RawDoc, Result};

use super::{Pipeline, Run};
use crate::context::Context;
use crate::expression::Scope;
use crate::stream::{Buffered, Stream};
use crate::testing::{array, docs, drain};

/// Documents that seem endless; asks the command to end on the way.
struct Endless {
    context: Arc<Context>,
    made: i64,
    doc: DocBuf,
}

/// How many documents a stage may read on.
const LATE: i64 = 50;
const ASKED_AT: i64 = 200;

impl Stream for Endless {
    fn advance(&mut self) -> Result<bool> {
        self.made += 1;
        if self.made == ASKED_AT {
            self.context.interrupt.raise(Code(11601));
        }
        assert!(self.made < ASKED_AT + LATE, "it reads on and on");
        self.doc = espalier_value::doc! { "_id": self.made, "a": self.made % 7, "b": self.made };
        Ok(true)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.doc.as_raw()
    }
}

fn parse(stages: &str) -> Pipeline {
    Pipeline::parse(array(stages).as_raw(), &Scope::default(), &Context::default()).unwrap()
}

#[test]
fn stages_stop_reading() {
    for stages in [
        "[{$match: {a: -1}}]",
        "[{$count: 'n'}]",
        "[{$group: {_id: '$a', n: {$sum: '$b'}}}]",
        "[{$sort: {b: -1}}]",
        "[{$sort: {b: -1}}, {$limit: 3}]",
        "[{$sortByCount: '$a'}]",
        "[{$bucket: {groupBy: '$a', boundaries: [0, 3], default: 'more'}}]",
        "[{$bucketAuto: {groupBy: '$b', buckets: 3}}]",
        "[{$facet: {x: [{$match: {a: 1}}], y: [{$count: 'n'}]}}]",
        "[{$setWindowFields: {sortBy: {b: 1}, output: {n: {$sum: '$a'}}}}]",
        "[{$sample: {size: 3}}]",
        "[{$unwind: '$c'}]",
        "[{$redact: '$$PRUNE'}]",
        "[{$skip: 1000000}]",
        "[{$set: {c: 1}}, {$match: {c: 2}}]",
    ] {
        let context = Arc::new(Context::new(0, 1));
        let run = Run::new(context.clone());
        let input = Endless { context, made: 0, doc: DocBuf::new() };
        let error = parse(stages).run_all(Box::new(input), &run).and_then(drain).unwrap_err();
        assert_eq!(error.code().0, 11601, "{stages}");
    }
}

#[test]
fn stages_stop_within_one_document() {
    let many = "{$range: [0, 1000000]}";
    for stages in [
        "[{$densify: {field: 'b', range: {step: 1, bounds: [0, 900000000]}}}, {$skip: 800000000}]".to_string(),
        format!("[{{$set: {{c: {{$size: {{$map: {{input: {many}, in: '$a'}}}}}}}}}}]"),
        format!("[{{$set: {{c: {{$size: {{$filter: {{input: {many}, cond: '$a'}}}}}}}}}}]"),
        format!("[{{$set: {{c: {{$reduce: {{input: {many}, initialValue: 0, in: '$a'}}}}}}}}]"),
    ] {
        let run = Run::new(Arc::new(Context::new(0, 1)));
        run.context.interrupt.raise(Code(11601));
        let input = Buffered::new(docs("[{_id: 1, a: 1, b: 0}]"));
        let error = parse(&stages).run_all(Box::new(input), &run).and_then(drain).unwrap_err();
        assert_eq!(error.code().0, 11601, "{stages}");
    }
}

#[test]
fn without_disk_stages_say_that_they_need_it() {
    let input: Vec<DocBuf> = (0..2000i64).map(|i| espalier_value::doc! { "_id": i, "a": i % 999, "b": i }).collect();
    for stages in [
        "[{$group: {_id: '$b', n: {$push: '$a'}}}]",
        "[{$sort: {b: -1}}]",
        "[{$bucketAuto: {groupBy: '$b', buckets: 3}}]",
        "[{$facet: {x: [{$sort: {b: 1}}]}}]",
        "[{$setWindowFields: {sortBy: {b: 1}, output: {n: {$sum: '$a'}}}}]",
        "[{$setWindowFields: {partitionBy: '$a', output: {n: {$sum: '$a'}}}}]",
    ] {
        let mut run = Run::new(Arc::new(Context::new(0, 1)));
        run.limits.stage_memory_bytes_max = 10_000;
        let error = parse(stages).run_all(Box::new(Buffered::new(input.clone())), &run).and_then(drain).unwrap_err();
        assert_eq!(error.code(), Code::QueryExceededMemoryLimitNoDiskUseAllowed, "{stages}");
    }
}
