//! What the tests of the approximate pattern share.

use espalier_store::Store;
use espalier_value::{DocBuf, ValueRef};

use super::{Db, context, ns};

/// Nothing is flushed unless somebody asks for it.
pub const PATIENT: &str = "{patterns: [{approximate: {fields: [\"m.views\", \"likes\"], flush: {count: 1000, within: \"1h\"}, \
                       stamp: \"m.flushed\"}}]}";

pub fn declared(options: &str) -> Db {
    let db = Db::new();
    db.create("products", options).unwrap();
    db
}

pub fn with(options: &str) -> String {
    format!("{{patterns: [{{approximate: {{fields: [\"m.views\", \"likes\"], stamp: \"m.flushed\", {options}}}}}]}}")
}

pub fn one(db: &Db) -> DocBuf {
    db.find("products", "{_id: 1}").remove(0)
}

pub fn stored(db: &Db) -> DocBuf {
    db.raw("products", "{_id: 1}").remove(0)
}

pub fn inc(db: &Db, by: &str) -> (u64, u64) {
    let done = db.update("products", "{_id: 1}", &format!("{{$inc: {{\"m.views\": {by}}}}}")).unwrap();
    (done.matched, done.modified)
}

pub fn run(db: &Db) -> DocBuf {
    db.store.run_pattern(&ns("products"), &context()).unwrap().unwrap()
}

pub fn health(db: &Db) -> DocBuf {
    db.begin().coll_stats(&ns("products")).unwrap().patterns.unwrap()
}

pub fn number(doc: &DocBuf, name: &str) -> i64 {
    let mut value = ValueRef::Document(doc.as_raw());
    for part in name.split('.') {
        value = value.as_doc().and_then(|doc| doc.get(part)).unwrap_or_else(|| panic!("{name} of {doc:?}"));
    }
    espalier_value::number::Number::of(value).and_then(|n| n.as_exact_i64()).unwrap_or_else(|| panic!("{doc:?}"))
}
