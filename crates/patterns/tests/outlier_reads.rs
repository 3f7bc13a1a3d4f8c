//! Reading documents with the outlier pattern: pages, queries and sorts see every batch, as one moment has them.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::followers::{followers, number, users, with_followers};
use common::{Db, json, ns, projection};
use espalier_query::sort::Sort;
use espalier_store::Store;
use espalier_value::{DocBuf, ValueRef};

fn page(db: &Db, skip: i32, limit: i32) -> Vec<i32> {
    let docs = db.find_with("users", "{_id: 1}", |find| {
        find.projection = projection(&format!("{{followers: {{$slice: [{skip}, {limit}]}}}}"), "{}");
    });
    followers(&docs.unwrap()[0])
}

#[test]
fn b8_b9_pages_cross_from_the_head_into_batches_and_between_them() {
    let db = users();
    db.insert("users", &[with_followers(1, 47)]).unwrap();
    for (skip, limit) in [(0, 5), (7, 6), (9, 22), (18, 4), (40, 30), (47, 3), (-5, 3), (-100, 4)] {
        let all: Vec<i32> = (0..47).collect();
        let start = if skip >= 0 { skip.min(47) } else { (47 + skip).max(0) } as usize;
        let end = (start + limit as usize).min(47);
        assert_eq!(page(&db, skip, limit), all[start..end], "{skip}, {limit}");
    }
}

#[test]
fn b10_pages_go_by_what_is_there_after_elements_were_pulled() {
    let db = users();
    db.insert("users", &[with_followers(1, 60)]).unwrap();
    db.update("users", "{_id: 1}", "{$pull: {followers: {$gte: 12, $lt: 18}}}").unwrap();
    let expected: Vec<i32> = (0..60).filter(|n| !(12..18).contains(n)).collect();
    let mut paged = Vec::new();
    for skip in (0..60).step_by(7) {
        paged.extend(page(&db, skip, 7));
    }
    assert_eq!(paged, expected);
    // What is added after a pull from the head comes last.
    db.update("users", "{_id: 1}", "{$pull: {followers: 3}}").unwrap();
    db.update("users", "{_id: 1}", "{$push: {followers: 100}}").unwrap();
    assert_eq!(followers(&db.find("users", "{_id: 1}")[0]).last(), Some(&100));
    db.assert_valid("users");
}

#[test]
fn b15_detection_is_a_query_on_an_owned_field() {
    let db = users();
    db.insert("users", &[with_followers(1, 5), with_followers(2, 50), json("{_id: 3}")]).unwrap();
    let outliers = db.find_with("users", "{hasOverflow: true}", |find| find.projection = projection("{_id: 1}", "{}"));
    assert_eq!(outliers.unwrap(), [json("{_id: 2}")]);
}

#[test]
fn b16_membership_sees_every_batch() {
    let db = users();
    db.insert("users", &[with_followers(1, 5), with_followers(2, 50)]).unwrap();
    for indexed in [false, true] {
        if indexed {
            let spec = espalier_store::IndexSpec::parse(json("{key: {followers: 1}, name: \"f\"}").as_raw()).unwrap();
            let mut tx = db.begin();
            tx.create_indexes(&ns("users"), &[spec]).unwrap();
            tx.commit().unwrap();
        }
        let ids =
            |filter: &str| -> Vec<i32> { db.find("users", filter).iter().map(|doc| number(doc, "_id")).collect() };
        assert_eq!(ids("{followers: 3}"), [1, 2]);
        assert_eq!(ids("{followers: 42}"), [2]);
        assert_eq!(ids("{followers: {$all: [2, 42]}}"), [2]);
        assert_eq!(ids("{followers: {$ne: 42}}"), [1]);
        assert_eq!(ids("{\"followers.42\": 42}"), [2]);
        assert_eq!(ids("{followers: {$size: 50}}"), [2]);
    }
}

#[test]
fn b18_a_reader_sees_one_moment() {
    let db = Arc::new(users());
    db.insert("users", &[with_followers(1, 30)]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (writer, flag) = (db.clone(), &stop);
        scope.spawn(move || {
            // A run of numbers moves along: one at the end, one off the beginning.
            for next in 30..230 {
                writer.update("users", "{_id: 1}", &format!("{{$push: {{followers: {next}}}}}")).unwrap();
                writer.update("users", "{_id: 1}", "{$pop: {followers: -1}}").unwrap();
            }
            flag.store(true, Ordering::Relaxed);
        });
        while !stop.load(Ordering::Relaxed) {
            let doc = &db.find("users", "{_id: 1}")[0];
            let all = followers(doc);
            assert!(all.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{all:?}");
            assert_eq!(all.len() as i32, number(doc, "followerCount"));
        }
    });
}

#[test]
fn b19_a_partial_index_on_the_flag_holds_the_outliers_alone() {
    let db = users();
    let docs: Vec<DocBuf> = (0..50).map(|id| with_followers(id, if id == 7 { 30 } else { 3 })).collect();
    db.insert("users", &docs).unwrap();
    let spec = json("{key: {followerCount: -1}, name: \"outliers\", partialFilterExpression: {hasOverflow: true}}");
    let spec = espalier_store::IndexSpec::parse(spec.as_raw()).unwrap();
    let mut tx = db.begin();
    tx.create_indexes(&ns("users"), &[spec]).unwrap();
    tx.commit().unwrap();
    let find = |filter: &str| {
        let hinted = |find: &mut espalier_store::Find| find.hint = Some(espalier_store::Hint::Name("outliers".into()));
        db.find_with("users", filter, hinted).unwrap().len()
    };
    assert_eq!(find("{hasOverflow: true, followerCount: {$gte: 0}}"), 1);
    let report = db.validate("users", false);
    let keys = report.as_raw().get_doc("keysPerIndex").unwrap();
    assert!(matches!(keys.get("outliers"), Some(ValueRef::Int32(1) | ValueRef::Int64(1))), "{report:?}");
}

#[test]
fn c1_the_largest_documents_are_found_by_an_owned_count() {
    let db = users();
    let docs: Vec<DocBuf> = [3, 40, 12, 25].iter().zip(1..).map(|(count, id)| with_followers(id, *count)).collect();
    db.insert("users", &docs).unwrap();
    let found = db.find_with("users", "{}", |find| {
        find.sort = Sort::parse(json("{followerCount: -1}").as_raw(), &Default::default()).unwrap().map(Arc::new);
        find.limit = Some(2);
        find.projection = projection("{followerCount: 1}", "{}");
    });
    assert_eq!(found.unwrap(), [json("{_id: 2, followerCount: 40}"), json("{_id: 4, followerCount: 25}")]);
}

#[test]
fn a5_a6_pages_have_one_shape_whatever_the_length_and_meet_every_element_once() {
    let db = users();
    for (id, count) in [(1, 3), (2, 57)] {
        db.insert("users", &[with_followers(id, count)]).unwrap();
        let mut seen = Vec::new();
        for skip in (0..60).step_by(7) {
            let doc = db.find_with("users", &format!("{{_id: {id}}}"), |find| {
                find.projection = projection(&format!("{{followers: {{$slice: [{skip}, 7]}}}}"), "{}");
            });
            seen.extend(followers(&doc.unwrap()[0]));
        }
        assert_eq!(seen, (0..count as i32).collect::<Vec<_>>());
    }
}

#[test]
fn a_document_past_the_limit_is_paged_and_not_cut() {
    let db = Db::new();
    db.create("users", "{patterns: [{outlier: {array: \"followers\", threshold: 5, batchSize: 5}}]}").unwrap();
    let large = "x".repeat(900_000);
    db.insert("users", &[json("{_id: 1, followers: []}")]).unwrap();
    for _ in 0..20 {
        db.update("users", "{_id: 1}", &format!("{{$push: {{followers: \"{large}\"}}}}")).unwrap();
    }
    let error = db.find_with("users", "{}", |_| {}).unwrap_err();
    assert!(error.message().contains("$slice"), "{error}");
    let docs = db.find_with("users", "{}", |find| {
        find.projection = projection("{followers: {$slice: [18, 5]}}", "{}");
    });
    let doc = &docs.unwrap()[0];
    assert!(matches!(doc.as_raw().get("followers"), Some(ValueRef::Array(array)) if array.len() == 2));
    db.assert_valid("users");
    // Without the pattern it could not be one document, so the pattern stays.
    let error = db.modify("users", "{}").unwrap_err();
    assert!(error.message().contains("would measure"), "{error}");
    db.update("users", "{_id: 1}", "{$push: {followers: 7}}").unwrap();
    db.assert_valid("users");
    assert!(db.store.jobs().is_empty());
}

#[test]
fn read_head_gives_the_head_and_pages_on_request() {
    let db = Db::new();
    db.create("users", "{patterns: [{outlier: {array: \"followers\", threshold: 10, batchSize: 10, read: \"head\"}}]}")
        .unwrap();
    db.insert("users", &[with_followers(1, 33)]).unwrap();
    assert_eq!(followers(&db.find("users", "{_id: 1}")[0]), (0..10).collect::<Vec<_>>());
    assert_eq!(page(&db, 25, 4), [25, 26, 27, 28]);
    assert_eq!(db.find("users", "{followers: 32}").len(), 1);
}

#[test]
fn sorts_by_the_array_see_all_of_it() {
    let db = users();
    db.insert("users", &[with_followers(1, 40), with_followers(2, 12)]).unwrap();
    db.update("users", "{_id: 2}", "{$push: {followers: 500}}").unwrap();
    let docs = db.find_with("users", "{}", |find| {
        find.sort = Sort::parse(json("{followers: -1}").as_raw(), &Default::default()).unwrap().map(Arc::new);
        find.projection = projection("{_id: 1}", "{}");
    });
    assert_eq!(docs.unwrap(), [json("{_id: 2}"), json("{_id: 1}")]);
}
