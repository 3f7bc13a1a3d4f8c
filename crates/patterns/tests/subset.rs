//! The subset pattern by example: what hand-written top lists get wrong, and the pattern's own rules.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Db, Random, json};
use espalier_value::{DocBuf, ValueRef};

const TOP: &str = "{patterns: [{computed: {from: \"reviews\", on: {productId: \"_id\"}, into: \"reviewSummary\", \
    fields: {totalCount: {$count: {}}}}}, {subset: {from: \"reviews\", on: {productId: \"_id\"}, \
    into: \"reviewSummary.topReviews\", sort: {helpful: -1}, limit: 3, fields: [\"title\", \"helpful\"]}}]}";

fn shop() -> Db {
    let db = Db::new();
    db.create("products", TOP).unwrap();
    db.insert("products", &[json("{_id: 1}"), json("{_id: 2}")]).unwrap();
    db
}

fn add(db: &Db, id: i32, product: i32, helpful: i32) {
    let doc = format!("{{_id: {id}, productId: {product}, title: \"t{id}\", helpful: {helpful}}}");
    assert_eq!(db.insert("reviews", &[json(&doc)]).unwrap().inserted, 1);
}

/// The `_id`s of a product's list.
fn top(db: &Db, product: i32) -> Vec<i32> {
    let doc = &db.find("products", &format!("{{_id: {product}}}"))[0];
    let Some(ValueRef::Array(list)) = doc.as_raw().get_doc("reviewSummary").unwrap().get("topReviews") else {
        panic!("{doc:?}");
    };
    let id = |entry: ValueRef<'_>| match entry.as_doc().unwrap().get("_id") {
        Some(ValueRef::Int32(id)) => id,
        other => panic!("{other:?}"),
    };
    list.iter().map(id).collect()
}

#[test]
fn a1_a2_c3_the_list_is_ranked_by_what_is_stored() {
    let db = shop();
    for (id, helpful) in [(1, 5), (2, 9), (3, 1), (4, 7)] {
        add(&db, id, 1, helpful);
    }
    assert_eq!(top(&db, 1), [2, 4, 1]);
    // A review without the field ranks last, as a sort has it.
    db.insert("reviews", &[json("{_id: 5, productId: 1, title: \"new\"}")]).unwrap();
    assert_eq!(top(&db, 1), [2, 4, 1]);
    let first = "{\"reviewSummary.topReviews.0\": {_id: 2, title: \"t2\", helpful: 9}}";
    assert_eq!(db.find("products", first).len(), 1);
    db.assert_valid("products");
}

#[test]
fn a2_deleted_and_edited_reviews_leave_and_the_place_is_refilled() {
    let db = shop();
    for id in 1..=6 {
        add(&db, id, 1, id);
    }
    db.delete("reviews", "{_id: 5}", false).unwrap();
    assert_eq!(top(&db, 1), [6, 4, 3]);
    db.update("reviews", "{_id: 1}", "{$set: {helpful: 100}}").unwrap();
    assert_eq!(top(&db, 1), [1, 6, 4]);
    db.update("reviews", "{_id: 6}", "{$set: {title: \"edited\"}}").unwrap();
    assert_eq!(db.find("products", "{\"reviewSummary.topReviews.title\": \"edited\"}").len(), 1);
    db.update("reviews", "{_id: 6}", "{$set: {productId: 2}}").unwrap();
    assert_eq!((top(&db, 1), top(&db, 2)), (vec![1, 4, 3], vec![6]));
    db.delete("reviews", "{productId: 1}", true).unwrap();
    assert_eq!(top(&db, 1), Vec::<i32>::new());
    db.assert_valid("products");
}

#[test]
fn a6_equal_keys_are_ordered_by_id() {
    let db = shop();
    for id in [4, 2, 9, 1, 7] {
        add(&db, id, 1, 3);
    }
    assert_eq!(top(&db, 1), [1, 2, 4]);
    db.assert_valid("products");
}

#[test]
fn two_patterns_may_keep_fields_of_one_object_but_not_one_field() {
    let db = Db::new();
    let error = db.create("p", &TOP.replace("reviewSummary.topReviews", "reviewSummary.totalCount")).unwrap_err();
    assert!(error.message().contains("patterns.1: 'subset' and 'computed'"), "{error:?}");
    let error = db.create("p", &TOP.replace("limit: 3", "limit: 0")).unwrap_err();
    assert!(error.message().contains("patterns.1.subset.limit"), "{error:?}");
}

#[test]
fn the_list_is_the_patterns_alone() {
    let db = shop();
    add(&db, 1, 1, 1);
    for update in ["{$push: {\"reviewSummary.topReviews\": 1}}", "{$set: {\"reviewSummary.topReviews.0.title\": 1}}"] {
        let error = db.update("products", "{_id: 1}", update).unwrap_err();
        assert!(error.message().contains("belongs to the pattern 'subset'"), "{error:?}");
    }
}

/// Sixteen clients rank, unrank and move reviews while a reader checks every snapshot.
#[test]
fn c2_concurrent_reviewers_lose_no_place() {
    let db = Arc::new(shop());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..16)
            .map(|client| {
                let db = db.clone();
                scope.spawn(move || {
                    let mut random = Random(100 + client as u64);
                    for i in 0..40 {
                        let id = client * 1_000 + i;
                        match random.below(4) {
                            0 => assert!(db.delete("reviews", &format!("{{_id: {}}}", id - 2), false).unwrap() <= 1),
                            1 => {
                                let set = format!("{{$set: {{helpful: {}}}}}", random.below(50));
                                db.update("reviews", &format!("{{_id: {}}}", id - 1), &set).unwrap();
                            }
                            _ => add(&db, id, 1 + random.below(2) as i32, random.below(50) as i32),
                        }
                    }
                })
            })
            .collect();
        let reader = {
            let (db, stop) = (db.clone(), &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    db.assert_valid("products");
                }
            })
        };
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    db.assert_valid("products");
    let docs: Vec<DocBuf> = db.find("products", "{}");
    assert_eq!(docs.len(), 2);
}
