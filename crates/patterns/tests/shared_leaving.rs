//! Dropping the shared pattern: every logical collection becomes a collection of its own, while clients read and write it.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Db, Random, json, ns};
use espalier_engine::{Engine, EngineOptions};
use espalier_patterns::Patterned;
use espalier_store::{IndexSpec, Mode, Store, Transaction};
use espalier_value::{Code, DocBuf, Error, ValueRef};

const DECLARED: &str = "{patterns: [{shared: {discriminator: \"t\", name: \"customer_{t}_orders\"}}]}";
const A: &str = "customer_a_orders";
const B: &str = "customer_b_orders";

fn shop() -> Db {
    let db = Db::new();
    db.create("orders", DECLARED).unwrap();
    db
}

fn put(db: &Db, name: &str, text: &str) {
    let done = db.insert(name, &[json(text)]).unwrap();
    assert!(done.errors.is_empty(), "{:?}", done.errors);
}

fn index(db: &Db, name: &str, spec: &str) -> Result<(), Error> {
    let mut tx = db.begin();
    tx.create_indexes(&ns(name), &[IndexSpec::parse(json(spec).as_raw()).unwrap()])?;
    tx.commit().map(drop)
}

fn fill(db: &Db, count: i32) {
    for name in [A, B] {
        let docs: Vec<DocBuf> = (0..count).map(|n| json(&format!("{{_id: {n}, n: {n}, v: 0}}"))).collect();
        assert!(db.insert(name, &docs).unwrap().errors.is_empty());
    }
}

fn sorted(docs: Vec<DocBuf>) -> Vec<String> {
    let mut all: Vec<String> = docs.iter().map(|doc| doc.as_raw().to_string()).collect();
    all.sort();
    all
}

fn real(db: &Db) -> Vec<String> {
    db.begin_as(Mode::Auto, true).collections("shop").unwrap().into_iter().map(|there| there.name).collect()
}

fn options(db: &Db, name: &str) -> DocBuf {
    db.begin_as(Mode::Auto, true).collection(&ns(name)).unwrap().unwrap().options.listed
}

#[test]
fn every_logical_collection_becomes_one_of_its_own() {
    let db = shop();
    index(&db, A, "{key: {n: 1}, name: \"n_1\", unique: true}").unwrap();
    index(&db, "orders", "{key: {at: 1}, name: \"at_1\", expireAfterSeconds: 500}").unwrap();
    fill(&db, 50);
    put(&db, A, "{_id: {x: 1}, n: 100}");
    let before = [A, B].map(|name| sorted(db.find(name, "{}")));
    let shown: Vec<DocBuf> =
        db.begin().indexes(&ns(A)).unwrap().iter().map(|index| index.spec.listed.clone()).collect();
    db.modify("orders", "{}").unwrap();
    assert_eq!(real(&db), [A, B, "orders"]);
    for name in [A, B, "orders"] {
        assert!(options(&db, name).is_empty(), "{:?}", options(&db, name));
    }
    assert_eq!([A, B].map(|name| sorted(db.find(name, "{}"))), before);
    assert!(db.find("orders", "{}").is_empty());
    let indexes = db.begin().indexes(&ns(A)).unwrap();
    assert!(shown.iter().all(|shown| indexes.iter().any(|index| index.spec.listed == *shown)), "{indexes:?}");
    // What all of them had together each has now.
    assert!(indexes.iter().any(|index| index.spec.name == "at_1" && index.spec.expire_after_seconds.is_some()));
    assert!(!db.begin().indexes(&ns("orders")).unwrap().iter().any(|index| index.spec.name == "shared_tenant"));
    let again = db.insert(A, &[json("{_id: 999, n: 7}")]).unwrap();
    assert_eq!(again.errors[0].1.code(), Code::DuplicateKey);
    for name in [A, B, "orders"] {
        db.assert_valid(name);
    }
    // And back again, without what a logical collection cannot have.
    for name in [A, B] {
        let mut tx = db.begin();
        tx.drop_index(&ns(name), "at_1").unwrap();
        tx.commit().unwrap();
    }
    db.modify("orders", DECLARED).unwrap();
    assert_eq!(real(&db), ["orders"]);
    assert_eq!([A, B].map(|name| sorted(db.find(name, "{}"))), before);
    db.assert_valid("orders");
}

#[test]
fn what_could_not_be_kept_is_refused_before_anything_is_done() {
    let (engine, _) = Engine::open(EngineOptions { collections_max: 2, ..EngineOptions::default() }).unwrap();
    let db = Db { store: Arc::new(Patterned::open(Arc::new(engine.clone())).unwrap()), engine };
    db.create("orders", DECLARED).unwrap();
    fill(&db, 3);
    let before = sorted(db.find("orders", "{}"));
    let refused = |code: Code, reason: &str| {
        let error = db.modify("orders", "{}").unwrap_err();
        assert_eq!(error.code(), code, "{}", error.message());
        assert!(error.message().contains(reason) && error.message().contains("shared"), "{}", error.message());
        assert_eq!(real(&db), ["orders"]);
        assert_eq!(sorted(db.find("orders", "{}")), before);
        assert!(options(&db, "orders").as_raw().get("patternJob").is_none());
    };
    refused(Code::OperationFailed, "--max-collections");
    index(&db, "orders", "{key: {n: 1, t: 1}, name: \"all\", unique: true}").unwrap();
    refused(Code::OperationFailed, "--max-collections");
    assert_eq!(db.delete(B, "{}", true).unwrap(), 3);
    let before = sorted(db.find("orders", "{}"));
    let error = db.modify("orders", "{}").unwrap_err();
    assert!(error.message().contains("'all'"), "{}", error.message());
    assert_eq!(sorted(db.find("orders", "{}")), before);
    let mut tx = db.begin();
    tx.drop_index(&ns("orders"), "all").unwrap();
    tx.commit().unwrap();
    put(&db, "orders", "{_id: {t: \"b$\", _id: 1}, t: \"b$\"}");
    let error = db.modify("orders", "{}").unwrap_err();
    assert!(error.message().contains("name of a collection"), "{}", error.message());
    db.delete("orders", "{t: \"b$\"}", true).unwrap();
    db.modify("orders", "{}").unwrap();
    assert_eq!(real(&db), [A, "orders"]);
}

/// Writes under the logical names and through the physical collection, and what is to come of it.
fn write_meanwhile(db: &Db, seed: u64, done: &AtomicBool) -> (String, i64) {
    let mut random = Random(seed);
    // The last of them appears only now.
    let name = [A, B, "customer_c_orders"][(seed % 3) as usize].to_string();
    let mut added = 0;
    let mut next = 0;
    while !done.load(Ordering::Relaxed) || next < 30 {
        let id = 10_000 * (seed as i64 + 1) + next;
        next += 1;
        put(db, &name, &format!("{{_id: {id}, n: {id}, v: 1}}"));
        added += 1;
        match random.below(4) {
            0 => {
                assert_eq!(db.update(&name, &format!("{{_id: {id}}}"), "{$inc: {v: 2}}").unwrap().modified, 1);
                added += 2;
            }
            1 => {
                assert_eq!(db.delete(&name, &format!("{{_id: {id}}}"), false).unwrap(), 1);
                added -= 1;
            }
            2 => {
                // Under either name until it has moved, and then under its own.
                let moved = db
                    .update("orders", &format!("{{_id: {{t: \"{}\", _id: {id}}}}}", &name[9..10]), "{$inc: {v: 5}}")
                    .unwrap()
                    .modified;
                added += 5 * moved as i64;
            }
            _ => assert_eq!(db.find(&name, &format!("{{_id: {id}}}")).len(), 1),
        }
    }
    (name, added)
}

fn sum(db: &Db, name: &str) -> i64 {
    let value = |doc: &DocBuf| match doc.as_raw().get("v") {
        Some(ValueRef::Int32(n)) => i64::from(n),
        other => panic!("{other:?}"),
    };
    db.find(name, "{}").iter().map(value).sum()
}

#[test]
fn clients_write_while_it_is_dropped() {
    let db = shop();
    index(&db, A, "{key: {n: 1}, name: \"n_1\", unique: true}").unwrap();
    fill(&db, 100);
    let done = AtomicBool::new(false);
    let mut expected = [0i64; 3];
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|seed| {
                scope.spawn({
                    let (db, done) = (&db, &done);
                    move || write_meanwhile(db, seed, done)
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(20));
        db.modify("orders", "{}").unwrap();
        done.store(true, Ordering::Relaxed);
        for writer in writers {
            let (name, added) = writer.join().unwrap();
            expected[[A, B, "customer_c_orders"].iter().position(|other| *other == name).unwrap()] += added;
        }
    });
    assert_eq!(real(&db), [A, B, "customer_c_orders", "orders"]);
    assert_eq!([A, B, "customer_c_orders"].map(|name| sum(&db, name)), expected);
    assert!(db.find("orders", "{}").is_empty());
    for name in [A, B, "customer_c_orders"] {
        db.assert_valid(name);
        assert!(options(&db, name).is_empty());
    }
}

/// Deletes what is copied at the same moment, in the same order: what is gone must not come back with its copy.
#[test]
fn a_document_that_is_deleted_while_it_is_copied_stays_gone() {
    let db = shop();
    for round in 0..3 {
        fill(&db, 400);
        std::thread::scope(|scope| {
            scope.spawn(|| db.modify("orders", "{}").unwrap());
            for (client, name) in [A, B].into_iter().enumerate() {
                let db = &db;
                scope.spawn(move || {
                    for n in 0..400 {
                        // One alone, the other in transactions.
                        let deleted = match client {
                            0 => db.delete(name, &format!("{{_id: {n}}}"), false).unwrap(),
                            _ => delete_in_transaction(db, name, n),
                        };
                        assert_eq!(deleted, 1);
                    }
                });
            }
        });
        for name in [A, B, "orders"] {
            assert_eq!(sorted(db.find(name, "{}")), Vec::<String>::new(), "round {round}");
        }
        db.modify("orders", DECLARED).unwrap();
    }
}

fn delete_in_transaction(db: &Db, name: &str, n: i32) -> u64 {
    loop {
        let mut tx = db.begin_as(Mode::Transaction, false);
        let deleted = tx.delete(&ns(name), &common::delete_spec(&format!("{{_id: {n}}}"), false).unwrap());
        match deleted.and_then(|deleted| tx.commit().map(|_| deleted.deleted)) {
            Ok(deleted) => return deleted,
            Err(error) => assert_eq!(error.code(), Code::WriteConflict, "{}", error.message()),
        }
    }
}

/// Writes stored documents of A with `begin`'s transactions until the pattern is gone, and says by how much the sum of `v` grew.
fn write_stored(db: &Db, seed: i32, done: &AtomicBool, begin: impl Fn() -> Box<dyn Transaction>) -> i64 {
    let (mut added, mut next) = (0, 0);
    while !done.load(Ordering::Relaxed) || next < 50 {
        let (id, known) = (format!("{{t: \"a\", _id: {}}}", 10_000 * seed + next), next % 100);
        next += 1;
        let write = || {
            let mut tx = begin();
            let put = common::insert(&mut *tx, "orders", &[json(&format!("{{_id: {id}, t: \"a\", v: 1}}"))])?;
            assert!(put.errors.is_empty(), "{:?}", put.errors);
            let update = common::update_spec(&format!("{{_id: {{t: \"a\", _id: {known}}}}}"), "{$inc: {v: 3}}")?;
            let updated = tx.update(&ns("orders"), &update)?.modified;
            let delete = common::delete_spec(&format!("{{_id: {id}}}"), false)?;
            let deleted = if known % 3 == 0 { tx.delete(&ns("orders"), &delete)?.deleted } else { 0 };
            tx.commit()?;
            Ok(1 + 3 * updated as i64 - deleted as i64)
        };
        added += loop {
            match write() {
                Err(error) if Error::code(&error) == Code::WriteConflict => {}
                done => break done.unwrap(),
            }
        };
    }
    // What came after the drop is in the collection that was the physical one.
    assert!(db.find("orders", "{v: {$gt: 1}}").is_empty());
    added
}

#[test]
fn stored_documents_are_written_while_it_is_dropped() {
    let db = shop();
    fill(&db, 300);
    let done = AtomicBool::new(false);
    let added: i64 = std::thread::scope(|scope| {
        let (db, done) = (&db, &done);
        let auto = scope.spawn(|| write_stored(db, 1, done, || db.begin_as(Mode::Auto, true)));
        let together = scope.spawn(|| write_stored(db, 2, done, || db.begin_as(Mode::Transaction, true)));
        std::thread::sleep(Duration::from_millis(10));
        // It began when nobody thought of dropping anything.
        let mut early = db.begin_as(Mode::Auto, true);
        let modify = scope.spawn(|| db.modify("orders", "{}"));
        under_way(db);
        let mut one = |text: &str| common::insert(&mut *early, "orders", &[json(text)]).unwrap().errors;
        let first = one("{_id: {t: \"a\", _id: \"early\"}, t: \"a\", v: 1}");
        let wrong = one("{_id: 1}");
        early.commit().unwrap();
        let modified = modify.join().unwrap();
        done.store(true, Ordering::Relaxed);
        modified.unwrap();
        assert!(first.is_empty(), "{first:?}");
        assert!(wrong[0].1.message().contains("shared"), "{}", wrong[0].1.message());
        1 + auto.join().unwrap() + together.join().unwrap()
    });
    assert_eq!(sum(&db, A) + sum(&db, "orders"), added);
    assert_eq!(db.find(A, "{_id: \"early\"}").len(), 1);
    assert_eq!(sum(&db, B), 0);
    db.assert_valid(A);
}

#[test]
fn no_collection_takes_the_name_of_a_copy() {
    let db = shop();
    fill(&db, 500);
    std::thread::scope(|scope| {
        let modify = scope.spawn(|| db.modify("orders", "{}"));
        under_way(&db);
        let mut tx = db.begin_as(Mode::Auto, true);
        let put = common::insert(&mut *tx, "customer_c_orders", &[json("{_id: 1, v: 1}")]).unwrap();
        assert!(put.errors.is_empty(), "{:?}", put.errors);
        let error = tx.rename(&ns(A), &ns("other"), false).unwrap_err();
        assert!(error.message().contains("shared"), "{}", error.message());
        let error = tx.rename(&ns(A), &ns("orders"), true).unwrap_err();
        assert!(error.message().contains("shared"), "{}", error.message());
        tx.commit().unwrap();
        modify.join().unwrap().unwrap();
    });
    assert_eq!(real(&db), [A, B, "customer_c_orders", "orders"]);
    assert_eq!(db.find("customer_c_orders", "{}"), [json("{_id: 1, t: \"c\", v: 1}")]);
    assert_eq!(db.find(A, "{}").len(), 500);
    // And a name that stood for one is free.
    let mut tx = db.begin_as(Mode::Auto, true);
    assert!(common::insert(&mut *tx, "customer_d_orders", &[json("{_id: 1}")]).unwrap().errors.is_empty());
    tx.commit().unwrap();
    assert_eq!(db.find("customer_d_orders", "{}"), [json("{_id: 1}")]);
}

/// Waits until a migration has done something, and gives its number.
fn under_way(db: &Db) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        assert!(Instant::now() < deadline, "no migration was seen");
        std::thread::sleep(Duration::from_millis(1));
        for job in db.store.jobs() {
            let number = |doc: espalier_value::RawDoc<'_>, name: &str| match doc.get(name) {
                Some(ValueRef::Int64(n)) => n,
                other => panic!("{name}: {other:?}"),
            };
            if number(job.as_raw().get_doc("progress").unwrap(), "done") > 0 {
                return number(job.as_raw(), "opid") as u64;
            }
        }
    }
}

#[test]
fn a_drop_that_is_stopped_leaves_the_pattern() {
    let db = shop();
    fill(&db, 500);
    let before = sorted(db.find("orders", "{}"));
    let error = std::thread::scope(|scope| {
        let modify = scope.spawn(|| db.modify("orders", "{}"));
        let op = under_way(&db);
        // What is on its way is still a part.
        assert!(index(&db, A, "{key: {n: 1}, name: \"n_1\"}").unwrap_err().message().contains("being dropped"));
        assert!(db.store.kill_job(op));
        modify.join().unwrap().unwrap_err()
    });
    assert_eq!(error.code(), Code::Interrupted);
    assert_eq!(real(&db), ["orders"]);
    assert_eq!(sorted(db.find("orders", "{}")), before);
    assert_eq!(db.find(A, "{}").len(), 500);
    assert!(options(&db, "orders").as_raw().get("patternJob").is_none());
    index(&db, A, "{key: {n: 1}, name: \"n_1\"}").unwrap();
    db.assert_valid("orders");
    db.modify("orders", "{}").unwrap();
    assert_eq!(db.find(A, "{}").len(), 500);
}

#[test]
fn it_goes_on_after_a_restart() {
    let mut db = shop();
    fill(&db, 500);
    let before = [A, B].map(|name| sorted(db.find(name, "{}")));
    std::thread::scope(|scope| {
        let modify = scope.spawn(|| db.modify("orders", "{}"));
        under_way(&db);
        db.store.close();
        assert_eq!(modify.join().unwrap().unwrap_err().code(), Code::InterruptedAtShutdown);
    });
    db.store = Arc::new(Patterned::open(Arc::new(db.engine.clone())).unwrap());
    assert_eq!([A, B].map(|name| sorted(db.find(name, "{}"))), before);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !db.store.jobs().is_empty() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(real(&db), [A, B, "orders"]);
    assert_eq!([A, B].map(|name| sorted(db.find(name, "{}"))), before);
    assert!(db.find("orders", "{}").is_empty());
}

#[test]
fn the_physical_collection_takes_the_copies_along() {
    let db = shop();
    fill(&db, 500);
    std::thread::scope(|scope| {
        let modify = scope.spawn(|| db.modify("orders", "{}"));
        under_way(&db);
        let mut tx = db.begin();
        assert!(tx.drop_collection(&ns("orders")).unwrap());
        tx.commit().unwrap();
        // Whatever it says: there is nothing left to be migrated.
        drop(modify.join().unwrap());
    });
    assert!(real(&db).is_empty(), "{:?}", real(&db));
}

#[test]
fn another_template_takes_its_place() {
    let db = shop();
    fill(&db, 5);
    db.modify("orders", &DECLARED.replace("customer_{t}_orders", "c_{t}")).unwrap();
    assert_eq!(real(&db), [A, B, "orders"]);
    put(&db, "c_z", "{_id: 1}");
    assert_eq!(db.find("orders", "{}"), [json("{_id: {t: \"z\", _id: 1}, t: \"z\"}")]);
    assert_eq!(db.find(A, "{}").len(), 5);
}
