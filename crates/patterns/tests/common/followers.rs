//! What the tests of the outlier pattern share.

use espalier_value::{DocBuf, RawDoc, ValueRef};

use super::{Db, numbers};

pub const SMALL: &str = "{patterns: [{outlier: {array: \"followers\", threshold: 10, batchSize: 10}}]}";

pub fn users() -> Db {
    let db = Db::new();
    db.create("users", SMALL).unwrap();
    db
}

pub fn with_followers(id: i32, count: usize) -> DocBuf {
    let mut doc = DocBuf::new();
    doc.append("_id", id).append("followers", &numbers(count));
    doc
}

pub fn followers(doc: &DocBuf) -> Vec<i32> {
    values(doc.as_raw())
}

pub fn values(doc: RawDoc<'_>) -> Vec<i32> {
    match doc.get("followers") {
        Some(ValueRef::Array(array)) => array
            .iter()
            .map(|value| match value {
                ValueRef::Int32(n) => n,
                other => panic!("{other:?}"),
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

pub fn number(doc: &DocBuf, name: &str) -> i32 {
    match doc.as_raw().get(name) {
        Some(ValueRef::Int32(n)) => n,
        other => panic!("{name}: {other:?}"),
    }
}
