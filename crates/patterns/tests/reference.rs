//! The reference pattern by example: copies that follow, copies that stay, and what becomes of them.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Db, Random, json, ns};
use espalier_store::{Mode, Store};
use espalier_value::{DocBuf, ValueRef};

fn declared(more: &str) -> String {
    format!(
        "{{patterns: [{{reference: {{from: \"customers\", on: {{customerId: \"_id\"}}, into: \"customer\", \
         fields: [\"name\", \"address.city\"]{more}}}}}]}}"
    )
}

fn shop(more: &str) -> Db {
    let db = Db::new();
    db.create("orders", &declared(more)).unwrap();
    db.insert("customers", &[customer(1, "Ann", "Bern"), customer(2, "Bob", "Thun")]).unwrap();
    db
}

fn customer(id: i32, name: &str, city: &str) -> DocBuf {
    json(&format!("{{_id: {id}, name: \"{name}\", address: {{city: \"{city}\", street: \"s\"}}, visits: 0}}"))
}

fn order(id: i32, customer: i32) -> DocBuf {
    json(&format!("{{_id: {id}, customerId: {customer}}}"))
}

fn copy(db: &Db, order: i32) -> String {
    let doc = &db.find("orders", &format!("{{_id: {order}}}"))[0];
    match doc.as_raw().get("customer") {
        Some(ValueRef::Document(customer)) => {
            let city = customer.get_doc("address").and_then(|address| address.get_str("city"));
            format!("{} {}", customer.get_str("name").unwrap_or("-"), city.unwrap_or("-"))
        }
        _ => "none".to_string(),
    }
}

#[test]
fn e6_a_copy_that_follows_is_kept_equal() {
    let db = shop("");
    db.insert("orders", &[order(1, 1), order(2, 2), order(3, 9)]).unwrap();
    assert_eq!((copy(&db, 1), copy(&db, 2), copy(&db, 3)), ("Ann Bern".into(), "Bob Thun".into(), "none".into()));
    db.update("customers", "{_id: 1}", "{$set: {name: \"Anna\", \"address.city\": \"Biel\"}}").unwrap();
    assert_eq!(copy(&db, 1), "Anna Biel");
    // What is not copied is no reason to write.
    db.update("customers", "{_id: 1}", "{$inc: {visits: 1}}").unwrap();
    // Referring to somebody else, and to somebody who comes later.
    db.update("orders", "{_id: 1}", "{$set: {customerId: 2}}").unwrap();
    assert_eq!(copy(&db, 1), "Bob Thun");
    db.insert("customers", &[customer(9, "Zoe", "Chur")]).unwrap();
    assert_eq!(copy(&db, 3), "Zoe Chur");
    db.update("orders", "{_id: 3}", "{$set: {customerId: 77}}").unwrap();
    assert_eq!(copy(&db, 3), "- -");
    db.assert_valid("orders");
}

#[test]
fn e6_a_snapshot_is_copied_once_and_then_stays() {
    let db = shop(", mode: \"snapshot\"");
    db.insert("orders", &[order(1, 1)]).unwrap();
    db.update("customers", "{_id: 1}", "{$set: {name: \"Anna\"}}").unwrap();
    db.insert("orders", &[order(2, 1)]).unwrap();
    assert_eq!((copy(&db, 1), copy(&db, 2)), ("Ann Bern".into(), "Anna Bern".into()));
    let error = db.update("orders", "{_id: 1}", "{$set: {\"customer.name\": \"x\"}}").unwrap_err();
    assert!(error.message().contains("belongs to the pattern 'reference'"), "{error:?}");
    db.delete("customers", "{_id: 1}", false).unwrap();
    assert_eq!(copy(&db, 1), "Ann Bern");
    db.assert_valid("orders");
}

#[test]
fn deleted_documents_are_kept_unset_cascaded_or_held() {
    let db = shop("");
    db.insert("orders", &[order(1, 1)]).unwrap();
    db.delete("customers", "{_id: 1}", false).unwrap();
    assert_eq!(copy(&db, 1), "Ann Bern");
    db.assert_valid("orders");

    let db = shop(", onDelete: \"unset\"");
    db.insert("orders", &[order(1, 1), order(2, 2)]).unwrap();
    db.delete("customers", "{_id: 1}", false).unwrap();
    assert_eq!((copy(&db, 1), copy(&db, 2)), ("- -".into(), "Bob Thun".into()));
    db.assert_valid("orders");

    let db = shop(", onDelete: \"cascade\"");
    db.insert("orders", &[order(1, 1), order(2, 2), order(3, 1)]).unwrap();
    db.delete("customers", "{_id: 1}", false).unwrap();
    assert_eq!(db.find("orders", "{}").len(), 1);

    let db = shop(", onDelete: \"restrict\"");
    db.insert("orders", &[order(1, 1)]).unwrap();
    let error = db.delete("customers", "{_id: 1}", false).unwrap_err();
    assert!(error.message().contains("restrict"), "{error:?}");
    assert_eq!(db.find("customers", "{}").len(), 2);
    db.delete("customers", "{_id: 2}", false).unwrap();
}

#[test]
fn a_cascade_that_is_too_large_changes_nothing() {
    let db = shop(", onDelete: \"cascade\", inCommit: 5");
    db.insert("orders", &(0..10).map(|id| order(id, 1)).collect::<Vec<_>>()).unwrap();
    let error = db.delete("customers", "{_id: 1}", false).unwrap_err();
    assert!(error.message().contains("inCommit"), "{error:?}");
    assert_eq!((db.find("orders", "{}").len(), db.find("customers", "{}").len()), (10, 2));
}

/// Waits until nothing is left to be done.
fn wait(db: &Db) {
    let since = Instant::now();
    loop {
        let left = db.begin_as(Mode::Auto, true).count(&ns("system.patterns"), &everything()).unwrap();
        if left == 0 {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "{left} marks are left");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn everything() -> espalier_store::Find {
    espalier_store::Find::new(Arc::new(espalier_query::Filter::empty()), common::context())
}

#[test]
fn a_large_fan_out_goes_on_in_the_background_and_after_a_restart() {
    let db = shop(", inCommit: 20");
    db.insert("orders", &(0..300).map(|id| order(id, 1)).collect::<Vec<_>>()).unwrap();
    for name in ["A", "B", "C"] {
        db.update("customers", "{_id: 1}", &format!("{{$set: {{name: \"{name}\"}}}}")).unwrap();
        // What is on its way is no violation.
        db.assert_valid("orders");
    }
    wait(&db);
    assert_eq!(db.find("orders", "{\"customer.name\": \"C\"}").len(), 300);
    db.update("customers", "{_id: 1}", "{$set: {name: \"D\"}}").unwrap();
    db.store.close();
    let again = espalier_patterns::Patterned::open(Arc::new(db.engine.clone())).unwrap();
    let db = Db { store: Arc::new(again), engine: db.engine };
    wait(&db);
    assert_eq!(db.find("orders", "{\"customer.name\": \"D\"}").len(), 300);
    assert!(db.store.jobs().is_empty());
    db.assert_valid("orders");
}

#[test]
fn declared_on_data_it_fills_in() {
    let db = Db::new();
    db.insert("customers", &[customer(1, "Ann", "Bern")]).unwrap();
    db.insert("orders", &[order(1, 1), json("{_id: 2, customerId: 1, customer: {name: \"old\"}}")]).unwrap();
    db.modify("orders", &declared("")).unwrap();
    assert_eq!((copy(&db, 1), copy(&db, 2)), ("Ann Bern".into(), "Ann Bern".into()));
    db.assert_valid("orders");
}

#[test]
fn copies_and_summaries_between_two_collections_are_no_circle() {
    let db = shop("");
    let summary = "{patterns: [{computed: {from: \"orders\", on: {customerId: \"_id\"}, into: \"ordered\", \
                   fields: {count: {$count: {}}}}}]}";
    db.modify("customers", summary).unwrap();
    db.insert("orders", &[order(1, 1), order(2, 1)]).unwrap();
    assert_eq!(db.find("customers", "{_id: 1, \"ordered.count\": 2}").len(), 1);
    db.update("customers", "{_id: 1}", "{$set: {name: \"Eve\"}}").unwrap();
    assert_eq!(copy(&db, 2), "Eve Bern");
    db.assert_valid("orders");
    db.assert_valid("customers");
    // Copying what is counted from the copies is one.
    let circle = declared("").replace("\"name\"", "\"ordered\"");
    let counted = summary.replace("$count: {}", "$sum: \"$customer.ordered.count\"");
    db.modify("customers", &counted).unwrap();
    let error = db.modify("orders", &circle).unwrap_err();
    assert!(error.message().contains("circle"), "{error:?}");
}

/// Orders are made, moved and deleted while customers change their names; a reader checks every snapshot.
#[test]
fn concurrent_writers_leave_no_old_copy() {
    let db = Arc::new(shop(""));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..16)
            .map(|client| {
                let db = db.clone();
                scope.spawn(move || {
                    let mut random = Random(7 + client as u64);
                    for i in 0..40 {
                        let (id, of) = (client * 1_000 + i, 1 + random.below(3) as i32);
                        match random.below(6) {
                            0 => {
                                let name = format!("{{$set: {{name: \"n{id}\"}}}}");
                                db.update("customers", &format!("{{_id: {of}}}"), &name).unwrap();
                            }
                            1 => {
                                let to = format!("{{$set: {{customerId: {of}}}}}");
                                db.update("orders", &format!("{{_id: {}}}", id - 1), &to).unwrap();
                            }
                            2 => assert!(db.delete("orders", &format!("{{_id: {}}}", id - 2), false).unwrap() <= 1),
                            3 => {
                                // A customer that comes and goes.
                                if db.delete("customers", "{_id: 3}", false).unwrap() == 0 {
                                    db.insert("customers", &[customer(3, &format!("c{id}"), "x")]).unwrap();
                                }
                            }
                            _ => assert_eq!(db.insert("orders", &[order(id, of)]).unwrap().inserted, 1),
                        }
                    }
                })
            })
            .collect();
        let reader = {
            let (db, stop) = (db.clone(), &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    db.assert_valid("orders");
                }
            })
        };
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    wait(&db);
    db.assert_valid("orders");
}
