//! Derivations with a declared delay: carried out from the change log, exactly once.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Db, Random, json, ns};
use espalier_patterns::Patterned;
use espalier_store::{Mode, Store};
use espalier_value::{DocBuf, ValueRef};

const SUMMARY: &str = "{patterns: [{computed: {from: \"reviews\", on: {productId: \"_id\"}, into: \"summary\", \
    fields: {count: {$count: {}}, mean: {$avg: \"$rating\"}, best: {$max: \"$rating\"}}, freshness: \"100ms\"}}, \
    {subset: {from: \"reviews\", on: {productId: \"_id\"}, into: \"top\", sort: {rating: -1}, limit: 2, \
    fields: [\"rating\"], freshness: \"100ms\"}}]}";

fn review(id: i32, product: i32, rating: i32) -> DocBuf {
    json(&format!("{{_id: {id}, productId: {product}, rating: {rating}}}"))
}

/// Waits until every product has what its reviews give.
fn settled(db: &Db, expected: i32) {
    let since = Instant::now();
    loop {
        let counts: i32 = db
            .find("products", "{}")
            .iter()
            .map(|doc| match doc.as_raw().get_doc("summary").and_then(|summary| summary.get("count")) {
                Some(ValueRef::Int32(count)) => count,
                other => panic!("{other:?} in {doc:?}"),
            })
            .sum();
        db.assert_valid("products");
        if counts == expected {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "{counts} of {expected}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn reopen(db: Db) -> Db {
    db.store.close();
    let store = Arc::new(Patterned::open(Arc::new(db.engine.clone())).unwrap());
    Db { store, engine: db.engine }
}

#[test]
fn the_summary_follows_within_the_delay() {
    let db = Db::new();
    db.create("products", SUMMARY).unwrap();
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    for id in 0..50 {
        db.insert("reviews", &[review(id, 1, id % 7)]).unwrap();
    }
    settled(&db, 50);
    db.delete("reviews", "{rating: 6}", true).unwrap();
    db.update("reviews", "{_id: 1}", "{$set: {rating: 0}}").unwrap();
    settled(&db, 43);
    assert_eq!(db.find("products", "{\"summary.best\": 5}").len(), 1);
    let stats = db.begin().coll_stats(&ns("products")).unwrap().patterns.unwrap();
    let text = ValueRef::Document(stats.as_raw()).to_string();
    assert!(text.contains("lagMillis"), "{text}");
    assert!(db.store.status().as_raw().get_doc("patterns").unwrap().get("delayed").is_some());
}

#[test]
fn d9_a_restart_in_between_counts_nothing_twice() {
    let mut db = Db::new();
    db.create("products", SUMMARY).unwrap();
    db.insert("products", &(0..5).map(|id| json(&format!("{{_id: {id}}}"))).collect::<Vec<_>>()).unwrap();
    let mut expected = 0;
    for round in 0..8 {
        for i in 0..40 {
            let id = round * 100 + i;
            db.insert("reviews", &[review(id, id % 5, id % 9)]).unwrap();
            expected += 1;
        }
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_millis(60));
        }
        db = reopen(db);
        db.assert_valid("products");
    }
    settled(&db, expected);
    // And after the last change nothing moves any more.
    std::thread::sleep(Duration::from_millis(400));
    settled(&db, expected);
}

#[test]
fn parents_that_come_and_go_meanwhile_are_exact() {
    let db = Arc::new(Db::new());
    db.create("products", SUMMARY).unwrap();
    std::thread::scope(|scope| {
        for client in 0..8 {
            let db = db.clone();
            scope.spawn(move || {
                let mut random = Random(client as u64 + 3);
                for i in 0..60 {
                    let (id, product) = (client * 1_000 + i, random.below(4) as i32);
                    match random.below(5) {
                        0 => drop(db.insert("products", &[json(&format!("{{_id: {product}}}"))]).unwrap()),
                        1 => assert!(db.delete("products", &format!("{{_id: {product}}}"), false).unwrap() <= 1),
                        2 => assert!(db.delete("reviews", &format!("{{_id: {}}}", id - 1), false).unwrap() <= 1),
                        _ => assert_eq!(db.insert("reviews", &[review(id, product, i % 5)]).unwrap().inserted, 1),
                    }
                    if i % 10 == 0 {
                        db.assert_valid("products");
                    }
                }
            });
        }
    });
    for product in 0..4 {
        db.insert("products", &[json(&format!("{{_id: {product}}}"))]).unwrap();
    }
    let reviews = db.find("reviews", "{}").len() as i32;
    settled(&db, reviews);
}

#[test]
fn declared_on_data_under_load_it_begins_where_the_data_is() {
    let db = Arc::new(Db::new());
    db.insert("products", &(0..10).map(|id| json(&format!("{{_id: {id}}}"))).collect::<Vec<_>>()).unwrap();
    std::thread::scope(|scope| {
        for client in 0..4 {
            let db = db.clone();
            scope.spawn(move || {
                for i in 0..150 {
                    let id = client * 1_000 + i;
                    db.insert("reviews", &[review(id, id % 10, i % 5)]).unwrap();
                }
            });
        }
        db.modify("products", SUMMARY).unwrap();
    });
    settled(&db, 600);
}

#[test]
fn a_lost_place_in_the_log_is_no_lost_count() {
    let db = Db::new();
    db.create("products", SUMMARY).unwrap();
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    db.insert("reviews", &(0..20).map(|id| review(id, 1, 3)).collect::<Vec<_>>()).unwrap();
    // As if the checkpoint had never been written.
    let mut tx = db.begin_as(Mode::Auto, true);
    tx.delete(&ns("system.patterns"), &common::delete_spec("{}", true).unwrap()).unwrap();
    tx.commit().unwrap();
    settled(&db, 20);
    db.insert("reviews", &[review(100, 1, 3)]).unwrap();
    settled(&db, 21);
}

#[test]
fn a_renamed_source_goes_on_under_its_new_name() {
    let db = Db::new();
    db.create("products", SUMMARY).unwrap();
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    for id in 0..20 {
        db.insert("reviews", &[review(id, 1, 1)]).unwrap();
    }
    let mut tx = db.begin();
    tx.rename(&ns("reviews"), &ns("opinions"), false).unwrap();
    tx.commit().unwrap();
    for id in 20..40 {
        db.insert("opinions", &[review(id, 1, 2)]).unwrap();
    }
    settled(&db, 40);
    let db = reopen(db);
    db.delete("opinions", "{rating: 1}", true).unwrap();
    settled(&db, 20);
}
