//! What the tests of the archive pattern share.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_store::{Find, IndexSpec, Store};
use espalier_value::{DocBuf, Error, RawDoc, ValueRef};

use super::{Db, context, json, ns};

pub const BY_STATUS: &str = "when: {status: \"done\"}, stamp: {archivedAt: \"$$NOW\", reason: \"old\"}";

pub fn declared(options: &str) -> String {
    format!("{{patterns: [{{archive: {{{options}}}}}]}}")
}

/// A collection `orders` with these options beside the usual.
pub fn orders(more: &str) -> Db {
    let db = Db::new();
    db.create("orders", &declared(&format!("{BY_STATUS}{more}"))).unwrap();
    db
}

pub fn run(db: &Db, name: &str) -> (i64, i64) {
    let report = db.store.run_pattern(&ns(name), &context()).unwrap().unwrap();
    (int(report.as_raw(), "moved"), int(report.as_raw(), "kept"))
}

pub fn int(doc: RawDoc<'_>, name: &str) -> i64 {
    match doc.get(name) {
        Some(ValueRef::Int32(n)) => n.into(),
        Some(ValueRef::Int64(n)) => n,
        other => panic!("{name}: {other:?} in {doc:?}"),
    }
}

pub fn insert(db: &Db, text: &str) -> Result<(), Error> {
    match db.insert("orders", &[json(text)]).unwrap().errors.into_iter().next() {
        None => Ok(()),
        Some((_, error)) => Err(error),
    }
}

pub fn sorted(find: &mut Find, by: &str) {
    find.sort = Sort::parse(json(by).as_raw(), &Scope::default()).unwrap().map(Arc::new);
}

pub fn ids(docs: &[DocBuf]) -> Vec<i64> {
    docs.iter().map(|doc| int(doc.as_raw(), "_id")).collect()
}

pub fn create_index(db: &Db, spec: &str) -> Result<(), Error> {
    let spec = IndexSpec::parse(json(spec).as_raw()).unwrap();
    let mut tx = db.begin();
    tx.create_indexes(&ns("orders"), &[spec])?;
    tx.commit().map(drop)
}
