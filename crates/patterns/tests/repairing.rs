//! Mending several documents of a collection at once.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Db, json};
use espalier_store::Mode;

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
    db.validate("users", true);
    db.assert_valid("users");
    assert_eq!(db.find("users", "{followers: [1, 2, 3, 4, 5], followerCount: 5}").len(), 5);
}
