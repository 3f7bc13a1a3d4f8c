//! What the engine's tests share: an engine in memory, and documents written as in mongosh.
#![allow(clippy::unwrap_used, dead_code)]

use std::sync::Arc;

use espalier_engine::{Engine, EngineOptions};
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_query::update::Update as UpdateSpec;
use espalier_query::{Context, Filter};
use espalier_store::*;
use espalier_value::{ArrayBuf, DocBuf, RawDoc, ValueRef};

pub fn engine() -> Engine {
    Engine::open(EngineOptions::default()).unwrap().0
}

pub fn ns() -> Namespace {
    Namespace::new("test", "c")
}

pub fn context() -> Arc<Context> {
    Arc::new(Context::new(0, 1))
}

pub fn begin(engine: &Engine) -> Box<dyn Transaction> {
    engine.begin(Begin { mode: Mode::Auto, want_changes: false, raw: false, context: context() }).unwrap()
}

pub fn filter(doc: &DocBuf) -> Arc<Filter> {
    Arc::new(Filter::parse(doc.as_raw(), &Scope::default()).unwrap())
}

pub fn find(filter_doc: &DocBuf) -> Find {
    Find::new(filter(filter_doc), context())
}

pub fn sorted(filter_doc: &DocBuf, sort: &DocBuf) -> Find {
    let mut find = find(filter_doc);
    find.sort = Sort::parse(sort.as_raw(), &Scope::default()).unwrap().map(Arc::new);
    find
}

pub fn insert(engine: &Engine, docs: &[DocBuf]) -> Inserted {
    let raw: Vec<RawDoc<'_>> = docs.iter().map(DocBuf::as_raw).collect();
    let how = Insert { ordered: true, bypass_validation: false, statements: None, context: context() };
    begin(engine).insert(&ns(), &raw, &how).unwrap()
}

pub fn all(engine: &Engine, find: &Find) -> Vec<DocBuf> {
    let mut cursor = begin(engine).find(&ns(), find).unwrap();
    let mut out = Vec::new();
    while cursor.advance().unwrap() {
        out.push(DocBuf::from_raw(cursor.doc()));
    }
    out
}

pub fn ids(engine: &Engine, find: &Find) -> Vec<i64> {
    all(engine, find)
        .iter()
        .map(|d| match d.as_raw().get("_id") {
            Some(ValueRef::Int32(i)) => i.into(),
            Some(ValueRef::Int64(i)) => i,
            other => panic!("no numeric _id: {other:?}"),
        })
        .collect()
}

pub fn update(filter_doc: &DocBuf, spec: &DocBuf) -> Update {
    let spec = Arc::new(UpdateSpec::parse(ValueRef::Document(spec.as_raw()), &[], &Scope::default()).unwrap());
    Update { new_id: [7; 12], ..Update::new(filter(filter_doc), spec, context()) }
}

pub fn delete(filter_doc: &DocBuf, multi: bool) -> Delete {
    Delete { multi, ..Delete::new(filter(filter_doc), context()) }
}

/// An index on these `name: direction` parts.
pub fn index(name: &str, parts: &[(&str, i32)], unique: bool) -> IndexSpec {
    let mut doc = DocBuf::new();
    doc.append_doc("key", |key| {
        for (path, direction) in parts {
            key.append(path, *direction);
        }
    });
    doc.append("name", name);
    if unique {
        doc.append("unique", true);
    }
    IndexSpec::parse(doc.as_raw()).unwrap()
}

pub fn array(values: &[i32]) -> ArrayBuf {
    values.iter().map(|v| ValueRef::Int32(*v)).collect()
}

/// The stages of the winning plan, outermost first, and (keys, documents) examined.
pub fn plan(engine: &Engine, find: &Find) -> (Vec<String>, i32, i32) {
    let explained = begin(engine).explain(&ns(), find, Verbosity::ExecutionStats).unwrap();
    let stats = explained.as_raw().get_doc("executionStats").unwrap();
    let number = |name: &str| match stats.get(name) {
        Some(ValueRef::Int32(n)) => n,
        other => panic!("{name}: {other:?}"),
    };
    let mut stages = Vec::new();
    let mut at = stats.get_doc("executionStages");
    while let Some(stage) = at {
        stages.push(stage.get_str("stage").unwrap().to_string());
        at = stage.get_doc("inputStage");
    }
    (stages, number("totalKeysExamined"), number("totalDocsExamined"))
}

pub fn assert_valid(engine: &Engine) {
    let report = begin(engine).validate(&ns(), true, false).unwrap();
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(true))), "{report:?}");
}
