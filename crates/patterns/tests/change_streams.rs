//! Change streams on a collection with a pattern tell of logical documents.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Db, json, ns};
use espalier_query::Interrupt;
use espalier_store::feed::{Event, EventKind, Scope, Watch};
use espalier_store::{Mode, Store};

/// The events of a database since a time, one line each.
fn events(db: &Db, after: u64, raw: bool) -> Vec<Event> {
    let scope = Scope::Database("shop".into());
    let mut feed = db.store.changes(Watch { scope, raw, after }).unwrap();
    let mut events = Vec::new();
    while let Some(event) = feed.next_event(&Interrupt::default(), Some(std::time::Instant::now())).unwrap() {
        events.push(event);
    }
    events
}

fn told(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .map(|event| {
            let what = &event.what;
            let detail = what.description.as_ref().or(what.document.as_ref()).map(|doc| doc.as_raw().to_string());
            format!("{} {} {}", what.ns.collection(), what.kind.name(), detail.unwrap_or_default())
        })
        .collect()
}

#[test]
fn an_array_in_batches_is_told_as_one() {
    let db = Db::new();
    db.create("users", "{patterns: [{outlier: {array: \"followers\", threshold: 2, batchSize: 2}}]}").unwrap();
    let start = db.store.time();
    db.insert("users", &[json("{_id: 1, followers: [1, 2, 3]}")]).unwrap();
    db.update("users", "{_id: 1}", "{$push: {followers: {$each: [4, 5]}}, $set: {n: 1}}").unwrap();
    db.update("users", "{_id: 1}", "{$set: {n: 2}}").unwrap();
    db.update("users", "{_id: 1}", "{n: 3}").unwrap();
    db.delete("users", "{_id: 1}", false).unwrap();
    db.store.flush().unwrap();
    let all = events(&db, start, false);
    let expected = [
        "users insert { _id: 1, followers: [ 1, 2, 3 ], followerCount: 3, hasOverflow: true, overflowCount: 1 }",
        "users update { updatedFields: { followers.3: 4, followers.4: 5, n: 1, followerCount: 5, hasOverflow: true, \
         overflowCount: 2 }, removedFields: [], truncatedArrays: [] }",
        "users update { updatedFields: { n: 2 }, removedFields: [], truncatedArrays: [] }",
        "users replace { _id: 1, n: 3, followerCount: 0, hasOverflow: false, overflowCount: 0 }",
        "users delete ",
    ];
    assert_eq!(told(&all), expected);
    // What was stored can be had, too.
    assert!(events(&db, start, true).iter().any(|event| event.what.ns == ns("followerOverflow")));
}

#[test]
fn a_transaction_is_told_together_and_a_migration_not_at_all() {
    let db = Db::new();
    db.create("users", "{}").unwrap();
    db.insert("users", &[json("{_id: 1, followers: [1, 2, 3, 4, 5]}")]).unwrap();
    let start = db.store.time();
    let pattern = "{patterns: [{outlier: {array: \"followers\", threshold: 2, batchSize: 2}}]}";
    db.modify("users", pattern).unwrap();
    let mut tx = db.begin_as(Mode::Transaction, false);
    tx.update(&ns("users"), &common::update_spec("{_id: 1}", "{$push: {followers: 6}}").unwrap()).unwrap();
    tx.update(&ns("users"), &common::update_spec("{_id: 1}", "{$pop: {followers: -1}}").unwrap()).unwrap();
    tx.commit().unwrap();
    db.store.flush().unwrap();
    let all = events(&db, start, false);
    let documents: Vec<_> = all
        .iter()
        .filter(|event| matches!(event.what.kind, EventKind::Insert | EventKind::Update | EventKind::Replace))
        .collect();
    assert_eq!(documents.len(), 2, "{:?}", told(&all));
    assert_eq!(documents[0].stamp, documents[1].stamp);
}
