//! Many clients who write what leads to one document: they are carried along with each other, nobody starves, and nobody
//! hears of the others.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Barrier;
use std::time::{Duration, Instant};

use common::{Db, Random, context, json, ns};
use espalier_query::Interrupt;
use espalier_store::feed::{EventKind, Scope, Watch};
use espalier_store::{Insert, Remembered, SessionId, Statements, Store};
use espalier_value::{Code, ValueRef};

const PATTERNS: &str = "{patterns: [\
    {computed: {from: \"reviews\", on: {productId: \"_id\"}, into: \"summary\", fields: {n: {$count: {}}, \
     sum: {$sum: \"$rating\"}, best: {$max: \"$rating\"}, byRating: {$countBy: \"$rating\"}}}}, \
    {subset: {from: \"reviews\", on: {productId: \"_id\"}, into: \"top\", sort: {rating: -1}, limit: 3, \
     fields: [\"rating\"]}}]}";
const CLIENTS: i32 = 32;

fn shop() -> Db {
    let db = Db::new();
    db.create("products", PATTERNS).unwrap();
    db.insert("products", &[json("{_id: 1}"), json("{_id: 2}")]).unwrap();
    db
}

/// The events of one kind in a collection since a time: the `_id` of the document of each, and the commit it was in.
fn events(db: &Db, collection: &str, kind: EventKind, after: u64) -> Vec<(String, u64)> {
    db.store.flush().unwrap();
    let watch = Watch { scope: Scope::Collection(ns(collection)), raw: false, after };
    let mut feed = db.store.changes(watch).unwrap();
    let mut out = Vec::new();
    while let Some(event) = feed.next_event(&Interrupt::default(), Some(Instant::now())).unwrap() {
        if event.what.kind == kind {
            let key = event.what.key.as_ref().unwrap();
            out.push((key.as_raw().get("_id").unwrap().to_string(), event.stamp));
        }
    }
    out
}

/// Runs the clients at the same moment; how long each took.
fn clients(count: i32, client: impl Fn(i32) + Sync) -> Vec<Duration> {
    let start = Barrier::new(count as usize);
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..count)
            .map(|number| {
                let (client, start) = (&client, &start);
                scope.spawn(move || {
                    start.wait();
                    let since = Instant::now();
                    client(number);
                    since.elapsed()
                })
            })
            .collect();
        started.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

fn assert_nobody_starved(mut took: Vec<Duration>) {
    took.sort();
    let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
    assert!(longest < median * 4 + Duration::from_millis(50), "median {median:?}, longest {longest:?}");
}

#[test]
fn reviews_of_one_product_are_added_together() {
    const EACH: i32 = 40;
    let db = shop();
    let start = db.store.time();
    let took = clients(CLIENTS, |client| {
        for number in 0..EACH {
            let id = client * EACH + number;
            let doc = json(&format!("{{_id: {id}, productId: 1, rating: {}}}", id % 5));
            assert_eq!(db.insert("reviews", &[doc]).unwrap().inserted, 1);
            // Whoever was answered sees its own.
            let product = &db.find("products", "{_id: 1}")[0];
            let n = product.as_raw().get_doc("summary").unwrap().get("n").unwrap().to_string();
            assert!(n.parse::<i32>().unwrap() > number);
        }
    });
    assert_nobody_starved(took);
    let all = CLIENTS * EACH;
    let product = &db.find("products", "{_id: 1}")[0];
    let summary = product.as_raw().get_doc("summary").unwrap();
    assert_eq!(summary.get("n").unwrap().to_string(), all.to_string());
    assert_eq!(summary.get("sum").unwrap().to_string(), (0..all).map(|id| id % 5).sum::<i32>().to_string());
    db.assert_valid("products");
    // Each has an event of its own; the product changed less often than reviews came.
    let added = events(&db, "reviews", EventKind::Insert, start);
    assert_eq!(added.len(), all as usize);
    assert!(added.is_sorted_by_key(|(_, stamp)| *stamp));
    let changed = events(&db, "products", EventKind::Update, start).len();
    assert!(changed < all as usize / 2, "{changed} commits for {all} reviews");
}

#[test]
fn edits_and_deletes_are_carried_along() {
    const EACH: i32 = 12;
    let db = shop();
    for client in 0..CLIENTS {
        let docs: Vec<_> = (0..EACH)
            .map(|number| json(&format!("{{_id: {}, productId: 1, rating: 1}}", client * EACH + number)))
            .collect();
        db.insert("reviews", &docs).unwrap();
    }
    let start = db.store.time();
    let took = clients(CLIENTS, |client| {
        let mut random = Random(client as u64);
        for number in 0..EACH {
            let filter = format!("{{_id: {}}}", client * EACH + number);
            match number % 4 {
                0 => assert_eq!(db.delete("reviews", &filter, false).unwrap(), 1),
                1 => assert_eq!(db.update("reviews", &filter, "{$set: {productId: 2}}").unwrap().modified, 1),
                2 => {
                    let rating = 2 + random.below(4);
                    let update = format!("{{$set: {{rating: {rating}}}}}");
                    assert_eq!(db.update("reviews", &filter, &update).unwrap().modified, 1);
                }
                _ => {
                    let doc = json(&format!("{{_id: {}, productId: 1, rating: 3}}", 10_000 + client * EACH + number));
                    assert_eq!(db.insert("reviews", &[doc]).unwrap().inserted, 1);
                }
            }
        }
    });
    assert_nobody_starved(took);
    db.assert_valid("products");
    let count = |product: i32| {
        let product = &db.find("products", &format!("{{_id: {product}}}"))[0];
        product.as_raw().get_doc("summary").unwrap().get("n").unwrap().to_string()
    };
    let quarter = CLIENTS * EACH / 4;
    assert_eq!(count(1), (CLIENTS * EACH - quarter).to_string());
    assert_eq!(count(2), quarter.to_string());
    let changed = events(&db, "products", EventKind::Update, start);
    let changed = changed.iter().filter(|(id, _)| id == "1").count();
    assert!(changed < (CLIENTS * EACH) as usize * 3 / 4, "{changed} commits for {} writes", CLIENTS * EACH);
}

#[test]
fn an_error_is_its_own_clients_alone() {
    const EACH: i32 = 30;
    let db = shop();
    db.insert("reviews", &[json("{_id: 0, productId: 1, rating: 1}")]).unwrap();
    let took = clients(CLIENTS, |client| {
        for number in 0..EACH {
            let id = 1 + client * EACH + number;
            match number % 3 {
                // There already.
                0 => {
                    let doc = json("{_id: 0, productId: 1, rating: 5}");
                    let done = db.insert("reviews", &[doc]).unwrap();
                    assert_eq!((done.inserted, done.errors.len()), (0, 1));
                    assert_eq!(done.errors[0].1.code(), Code::DuplicateKey);
                }
                // The whole of it fails, and takes nobody along.
                1 => {
                    let doc = json(&format!("{{_id: {id}, productId: 1, rating: 2, n: \"text\"}}"));
                    assert_eq!(db.insert("reviews", &[doc]).unwrap().inserted, 1);
                    let filter = format!("{{_id: {id}}}");
                    let error = db.update("reviews", &filter, "{$inc: {n: 1}, $set: {rating: 9}}").unwrap_err();
                    assert_eq!(error.code(), Code::TypeMismatch);
                }
                _ => {
                    let doc = json(&format!("{{_id: {id}, productId: 1, rating: 3}}"));
                    assert_eq!(db.insert("reviews", &[doc]).unwrap().inserted, 1);
                }
            }
        }
    });
    assert_nobody_starved(took);
    let product = &db.find("products", "{_id: 1}")[0];
    let summary = product.as_raw().get_doc("summary").unwrap();
    assert_eq!(summary.get("n").unwrap().to_string(), (1 + CLIENTS * EACH * 2 / 3).to_string());
    assert_eq!(summary.get("best").unwrap().to_string(), "3");
    db.assert_valid("products");
}

#[test]
fn a_retry_of_a_review_that_was_carried_along_finds_its_answer() {
    let db = shop();
    clients(CLIENTS, |client| {
        let session: SessionId = [client as u8; 16];
        let statements = Statements { session, txn_number: 7, ids: vec![3] };
        let doc = json(&format!("{{_id: {client}, productId: 1, rating: 1}}"));
        let how = Insert { ordered: true, bypass_validation: false, statements: Some(statements), context: context() };
        let mut tx = db.begin();
        assert_eq!(tx.insert(&ns("reviews"), &[doc.as_raw()], &how).unwrap().inserted, 1);
        tx.commit().unwrap();
        let remembered = db.store.remembered(&session, 7).unwrap();
        assert!(matches!(&remembered[..], [Remembered::Inserted(ids)] if *ids == [3]), "{remembered:?}");
    });
    db.assert_valid("products");
}

#[test]
fn an_interrupted_client_leaves_the_others_alone() {
    let db = shop();
    clients(CLIENTS, |client| {
        for number in 0..20 {
            let id = client * 20 + number;
            let doc = json(&format!("{{_id: {id}, productId: 1, rating: 1}}"));
            let context = context();
            let dies = id % 3 == 0;
            if dies {
                context.interrupt.raise(Code::Interrupted);
            }
            let how = Insert { ordered: true, bypass_validation: false, statements: None, context };
            let mut tx = db.begin();
            let done = tx.insert(&ns("reviews"), &[doc.as_raw()], &how);
            match dies {
                // It may have been on its way already.
                true => assert!(done.as_ref().is_ok_and(|done| done.inserted == 1) || done.is_err()),
                false => assert_eq!(done.unwrap().inserted, 1),
            }
            tx.commit().unwrap();
        }
    });
    let product = &db.find("products", "{_id: 1}")[0];
    let n = product.as_raw().get_doc("summary").unwrap().get("n").unwrap().to_string();
    assert_eq!(n, db.find("reviews", "{}").len().to_string());
    assert!(matches!(db.validate("products", false).as_raw().get("valid"), Some(ValueRef::Bool(true))));
}
