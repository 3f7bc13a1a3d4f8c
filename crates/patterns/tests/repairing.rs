//! Mending several documents of a collection at once.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Db, json};
use espalier_store::Mode;
use espalier_value::ValueRef;

#[test]
fn batches_that_are_made_anew_have_ids_of_their_own() {
    let db = Db::new();
    db.create("users", "{patterns: [{outlier: {array: \"followers\", threshold: 2, batchSize: 2}}]}").unwrap();
    for id in 0..5 {
        db.insert("users", &[json(&format!("{{_id: {id}, followers: [1, 2, 3, 4, 5]}}"))]).unwrap();
    }
    let mut tx = db.begin_as(Mode::Auto, true);
    let mut wrong = common::update_spec("{}", "{$set: {followerCount: 99}}").unwrap();
    wrong.multi = true;
    tx.update(&common::ns("users"), &wrong).unwrap();
    tx.commit().unwrap();
    let report = db.validate("users", true);
    assert!(matches!(report.as_raw().get("repaired"), Some(ValueRef::Bool(true))), "{report:?}");
    db.assert_valid("users");
    assert_eq!(db.find("users", "{followers: [1, 2, 3, 4, 5], followerCount: 5}").len(), 5);
}

#[test]
fn what_cannot_be_mended_does_not_count_as_mended() {
    let db = Db::new();
    db.create("all", "{patterns: [{shared: {discriminator: \"t\", name: \"of_{t}\"}}]}").unwrap();
    db.insert("of_1", &[json("{_id: 1}")]).unwrap();
    let mut tx = db.begin_as(Mode::Auto, true);
    tx.update(&common::ns("all"), &common::update_spec("{}", "{$set: {t: \"x\"}}").unwrap()).unwrap();
    common::insert(&mut *tx, "all", &[json("{_id: 5}")]).unwrap();
    tx.commit().unwrap();
    let report = db.validate("all", true);
    let patterns = report.as_raw().get_doc("patterns").unwrap();
    assert_eq!(patterns.to_string(), "{ checked: 2, violations: 1, repaired: 1 }");
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(false))), "{report:?}");
}
