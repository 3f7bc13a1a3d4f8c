//! Pipelines as a whole; single stages are tested by their conformance files.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use espalier_value::{ArrayBuf, Result};

use super::{ALL, Pipeline, Run};
use crate::context::Context;
use crate::expression::Scope;
use crate::stream::Buffered;
use crate::testing::{array, doc, docs, drain, same};

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
    assert_eq!(code("[{$lookup: {}}]"), 115);
}
