//! Bringing what was there before into the shared pattern: documents of the physical collection, and collections whose
//! names fit.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{Db, json, ns};
use espalier_query::Interrupt;
use espalier_store::feed::{Scope, Watch};
use espalier_store::{IndexSpec, Mode, Store};
use espalier_value::{Code, DocBuf, ValueRef};

const DECLARED: &str = "{patterns: [{shared: {discriminator: \"t\", name: \"customer_{t}_orders\"}}]}";
const A: &str = "customer_a_orders";
const B: &str = "customer_b_orders";

fn put(db: &Db, name: &str, text: &str) {
    let done = db.insert(name, &[json(text)]).unwrap();
    assert!(done.errors.is_empty(), "{:?}", done.errors);
}

fn index(db: &Db, name: &str, spec: &str) {
    let mut tx = db.begin();
    tx.create_indexes(&ns(name), &[IndexSpec::parse(json(spec).as_raw()).unwrap()]).unwrap();
    tx.commit().unwrap();
}

fn shown(docs: &[DocBuf]) -> Vec<String> {
    let mut all: Vec<String> = docs.iter().map(|doc| doc.as_raw().to_string()).collect();
    all.sort();
    all
}

fn is_real(db: &Db, name: &str) -> bool {
    db.begin().collections("shop").unwrap().iter().any(|there| there.name == name)
}

#[test]
fn collections_that_fit_are_taken_in() {
    let db = Db::new();
    for name in [A, B] {
        db.create(name, "{}").unwrap();
        index(&db, name, "{key: {number: 1}, name: \"number_1\", unique: true}");
        for n in 0..50 {
            put(&db, name, &format!("{{_id: {n}, number: {n}, total: 5}}"));
        }
    }
    db.create("orders", DECLARED).unwrap();
    assert!(!is_real(&db, A) && !is_real(&db, B));
    assert_eq!(db.find("orders", "{}").len(), 100);
    assert_eq!(shown(&db.find(A, "{_id: 7}")), ["{ _id: 7, t: \"a\", number: 7, total: 5 }"]);
    // What was unique in each still is.
    let done = db.insert(A, &[json("{_id: 100, number: 7}")]).unwrap();
    assert_eq!(done.errors[0].1.code().0, 11000);
    put(&db, A, "{_id: 101, number: 101}");
    let listed = db.begin().indexes(&ns(A)).unwrap();
    assert!(listed.iter().any(|index| index.spec.name == "number_1" && index.spec.unique));
    db.assert_valid("orders");
}

#[test]
fn what_cannot_be_kept_is_refused_before_anything_moves() {
    for (options, spec, doc, reason) in [
        ("{validator: {x: 1}}", "", "", "validator"),
        ("{}", "{key: {at: 1}, name: \"at\", expireAfterSeconds: 5}", "", "TTL"),
        ("{}", "", "{_id: 1, t: \"other\"}", "_id 1"),
    ] {
        let db = Db::new();
        db.create(B, "{}").unwrap();
        put(&db, B, "{_id: 1}");
        db.create(A, options).unwrap();
        if !spec.is_empty() {
            index(&db, A, spec);
        }
        if !doc.is_empty() {
            put(&db, A, doc);
        }
        let error = db.create("orders", DECLARED).unwrap_err();
        assert!(error.message().contains(reason) && error.message().contains(A), "{}", error.message());
        assert!(is_real(&db, A) && is_real(&db, B) && !is_real(&db, "orders"));
        assert_eq!(db.find(B, "{}").len(), 1);
    }
}

#[test]
fn clients_write_while_their_collection_is_taken_in() {
    let db = Db::new();
    db.create(A, "{}").unwrap();
    for n in 0..400 {
        put(&db, A, &format!("{{_id: {n}, v: 0}}"));
    }
    db.create("orders", "{}").unwrap();
    let done = AtomicBool::new(false);
    let next = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut next = 400;
            while !done.load(Ordering::Relaxed) || next < 450 {
                put(&db, A, &format!("{{_id: {next}, v: 0}}"));
                db.update(A, &format!("{{_id: {}}}", next % 400), "{$inc: {v: 1}}").unwrap();
                assert_eq!(db.delete(A, &format!("{{_id: {next}}}"), false).unwrap(), 1);
                put(&db, A, &format!("{{_id: {next}, v: 7}}"));
                assert_eq!(db.find(A, &format!("{{_id: {next}}}")).len(), 1);
                next += 1;
            }
            next
        });
        db.modify("orders", DECLARED).unwrap();
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(!is_real(&db, A));
    let all = db.find(A, "{}");
    assert_eq!(all.len(), next as usize);
    let total: f64 = all.iter().map(|doc| doc.as_raw().get("v").unwrap().to_string().parse::<f64>().unwrap()).sum();
    let added = f64::from(next - 400);
    assert_eq!(total, added + 7.0 * added);
    db.assert_valid("orders");
}

#[test]
fn stored_documents_are_written_while_their_collection_is_taken_in() {
    let db = Db::new();
    let docs: Vec<DocBuf> = (0..400).map(|n| json(&format!("{{_id: {n}, v: 0}}"))).collect();
    assert!(db.insert(A, &docs).unwrap().errors.is_empty());
    let done = AtomicBool::new(false);
    let added = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // All by one transaction, as in a bulk write: it began before the pattern was there.
            let mut tx = db.begin_as(Mode::Auto, true);
            let mut added = 0;
            for n in 0.. {
                if done.load(Ordering::Relaxed) && n > 50 {
                    break;
                }
                let update = common::update_spec(&format!("{{_id: {}}}", n % 400), "{$inc: {v: 1}}").unwrap();
                added += tx.update(&ns(A), &update).unwrap().modified;
            }
            tx.commit().unwrap();
            added
        });
        db.create("orders", DECLARED).unwrap();
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(!is_real(&db, A));
    let value = |doc: &DocBuf| doc.as_raw().get("v").unwrap().to_string().parse::<u64>().unwrap();
    assert_eq!(db.find(A, "{}").iter().map(value).sum::<u64>(), added);
    // Then the name stands for a part, of which nothing is stored.
    let mut tx = db.begin_as(Mode::Auto, true);
    assert_eq!(tx.update(&ns(A), &common::update_spec("{}", "{$inc: {v: 1}}").unwrap()).unwrap().matched, 0);
    assert!(!is_real(&db, A));
    // Whoever asks for a stored document there gets it, and the collection that it takes.
    assert!(common::insert(&mut *tx, B, &[json("{_id: 1}")]).unwrap().errors.is_empty());
    tx.commit().unwrap();
    assert!(is_real(&db, B));
    db.assert_valid("orders");
}

#[test]
fn documents_that_name_their_tenant_are_brought_in() {
    let db = Db::new();
    db.create("orders", "{}").unwrap();
    put(&db, "orders", "{_id: 1, t: \"a\", v: 1}");
    put(&db, "orders", "{_id: 2, t: \"b\", v: 2}");
    put(&db, "orders", "{_id: 3, v: 3}");
    let error = db.modify("orders", DECLARED).unwrap_err();
    assert!(error.message().contains("_id 3"), "{}", error.message());
    assert_eq!(db.delete("orders", "{_id: 3}", false).unwrap(), 1);
    db.modify("orders", DECLARED).unwrap();
    assert_eq!(shown(&db.find("orders", "{}"))[0], "{ _id: { t: \"a\", _id: 1 }, t: \"a\", v: 1 }");
    assert_eq!(shown(&db.find(B, "{}")), ["{ _id: 2, t: \"b\", v: 2 }"]);
    db.assert_valid("orders");
}

#[test]
fn a_write_is_told_under_both_names() {
    let db = Db::new();
    db.create("orders", DECLARED).unwrap();
    let start = db.store.time();
    put(&db, A, "{_id: 1, v: 1}");
    db.update(A, "{_id: 1}", "{$set: {v: 2}}").unwrap();
    db.update("orders", "{t: \"a\"}", "{$set: {v: 3}}").unwrap();
    db.delete("orders", "{t: \"a\"}", false).unwrap();
    db.store.flush().unwrap();
    let scope = Scope::Database("shop".into());
    let mut feed = db.store.changes(Watch { scope, raw: false, after: start }).unwrap();
    let mut told = Vec::new();
    while let Some(event) = feed.next_event(&Interrupt::default(), Some(std::time::Instant::now())).unwrap() {
        let key = event.what.key.as_ref().and_then(|key| key.as_raw().get("_id").map(|id| id.to_string()));
        told.push(format!("{} {} {}", event.what.ns.collection(), event.what.kind.name(), key.unwrap_or_default()));
    }
    told.sort();
    let (mine, stored) = ("customer_a_orders", "orders");
    let mut expected = Vec::new();
    for what in ["delete", "insert", "update", "update"] {
        expected.push(format!("{mine} {what} 1"));
        expected.push(format!("{stored} {what} {{ t: \"a\", _id: 1 }}"));
    }
    expected.sort();
    assert_eq!(told, expected);
}

#[test]
fn what_is_on_its_way_is_written_under_its_own_name() {
    let db = Db::new();
    db.create("orders", DECLARED).unwrap();
    put(&db, A, "{_id: 1}");
    let there = db.find("orders", "{}");
    assert!(matches!(there[0].as_raw().get("t"), Some(ValueRef::String("a"))));
    // A name that stands for a part already cannot become one.
    let error = db.create(A, DECLARED).unwrap_err();
    assert!(error.message().contains("shared"), "{}", error.message());
}

/// Deletes what is copied at the same moment, in the same order: what is gone must not come back with its copy.
#[test]
fn a_document_that_is_deleted_while_it_is_copied_stays_gone() {
    for round in 0..3 {
        let db = Db::new();
        let docs: Vec<DocBuf> = (0..400).map(|n| json(&format!("{{_id: {n}, v: 0}}"))).collect();
        assert!(db.insert(A, &docs).unwrap().errors.is_empty());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                db.create("orders", DECLARED).unwrap();
            });
            scope.spawn(|| {
                for n in 0..400 {
                    loop {
                        let mut tx = db.begin_as(Mode::Transaction, false);
                        let one = common::delete_spec(&format!("{{_id: {n}}}"), false).unwrap();
                        let deleted = tx.delete(&ns(A), &one);
                        match deleted.and_then(|deleted| tx.commit().map(|_| deleted.deleted)) {
                            Ok(deleted) => break assert_eq!(deleted, 1),
                            Err(error) => assert_eq!(error.code(), Code::WriteConflict, "{}", error.message()),
                        }
                    }
                }
            });
        });
        while is_real(&db, A) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(shown(&db.find(A, "{}")), Vec::<String>::new(), "round {round}");
        assert_eq!(shown(&db.find("orders", "{}")), Vec::<String>::new(), "round {round}");
    }
}
