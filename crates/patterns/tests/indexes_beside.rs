//! Indexes that are different on logical documents and one on what is stored of them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Db, json, ns};
use espalier_store::IndexSpec;

const BUCKET: &str = "{patterns: [{bucket: {by: [\"s\"], time: \"ts\", every: \"1h\", into: \"beside\"}}]}";
const OUTLIER: &str = "{patterns: [{outlier: {array: \"v\", threshold: 2, into: \"beside\"}}]}";
const KEYS: [&str; 4] = ["{v: 1}", "{v: 1, w: 1}", "{w: 1, v: 1}", "{v: 1, x: -1}"];

fn spec(key: &str) -> IndexSpec {
    IndexSpec::parse(json(&format!("{{key: {key}, name: \"{key}\"}}")).as_raw()).unwrap()
}

fn create(db: &Db, key: &str) {
    let mut tx = db.begin();
    tx.create_indexes(&ns("c"), &[spec(key)]).unwrap();
    tx.commit().unwrap();
}

/// The keys of the indexes beside the collection that have to do with `v`.
fn beside(db: &Db) -> Vec<String> {
    let all = db.begin().indexes(&ns("beside")).unwrap();
    all.iter().map(|index| index.spec.key().to_string()).filter(|key| key.contains("v:")).collect()
}

fn come_and_go(pattern: &str, beside_all: &[&str], beside_last: &[&str]) {
    let db = Db::new();
    db.create("c", pattern).unwrap();
    KEYS.iter().for_each(|key| create(&db, key));
    assert_eq!(beside(&db), beside_all, "{pattern}");
    // As on documents that are there already.
    db.modify("c", "{}").unwrap();
    db.modify("c", pattern).unwrap();
    assert_eq!(beside(&db), beside_all, "{pattern}");
    for key in &KEYS[..3] {
        db.begin().drop_index(&ns("c"), key).unwrap();
    }
    assert_eq!(beside(&db), beside_last, "{pattern}");
    db.begin().drop_index(&ns("c"), KEYS[3]).unwrap();
    assert!(beside(&db).is_empty(), "{pattern}");
}

#[test]
fn indexes_on_readings_share_those_on_buckets() {
    come_and_go(BUCKET, &["{ measurements.v: 1 }"], &["{ measurements.v: 1 }"]);
}

#[test]
fn indexes_on_an_array_share_those_on_batches() {
    come_and_go(OUTLIER, &["{ v: 1 }"], &["{ v: 1 }"]);
}

#[test]
fn several_derivations_can_have_a_source_of_buckets() {
    let db = Db::new();
    db.create("c", BUCKET).unwrap();
    let derived = "{patterns: [{subset: {from: \"c\", on: {s: \"_id\"}, into: \"top\", sort: {v: -1, w: 1}}}, \
                   {computed: {from: \"c\", on: {s: \"_id\"}, into: \"sum\", fields: \
                   {last: {$last: \"$w\", sort: {v: 1}}}}}]}";
    db.create("t", derived).unwrap();
    db.insert("t", &[json("{_id: 1}")]).unwrap();
    db.insert("c", &[json("{_id: 1, s: 1, ts: date(0), v: 5, w: 7}")]).unwrap();
    db.assert_valid("t");
    assert_eq!(db.find("t", "{\"sum.last\": 7, \"top.v\": 5}").len(), 1);
}
