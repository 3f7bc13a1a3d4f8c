//! The archive pattern: what it promises, case by case. The names begin with the defect of the hand-written archive job
//! that the case is about, where there is one.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::orders::{BY_STATUS, create_index, declared, ids, insert, int, orders, run, sorted};
use common::{Db, Random, context, json, ns};
use espalier_store::{Find, Mode, Verbosity, Want};
use espalier_value::{Code, DocBuf, Error};

#[test]
fn a_declaration_is_listed_with_its_defaults() {
    let db = Db::new();
    db.create("orders", &declared("when: {status: \"done\"}")).unwrap();
    let info = db.begin().collection(&ns("orders")).unwrap().unwrap();
    let expected = json(
        "{patterns: [{archive: {when: {status: \"done\"}, into: \"ordersArchive\", stamp: {archivedAt: \"$$NOW\"}, \
         every: \"1h\", batch: 1000, read: \"active\", write: \"thaw\"}}]}",
    );
    assert_eq!(info.options.listed, expected);
    let owner = db.begin().collection(&ns("ordersArchive")).unwrap().unwrap();
    assert_eq!(owner.options.listed, json("{patternOwner: {collection: \"orders\", pattern: \"archive\"}}"));
}

#[test]
fn a_wrong_declaration_is_refused_with_its_path() {
    let db = Db::new();
    for (options, path) in [
        ("into: \"x\"", "patterns.0.archive.when"),
        ("when: 3", "patterns.0.archive.when"),
        ("when: {}", "patterns.0.archive.when"),
        ("when: {a: {$lt: \"$$NOW - 90 days\"}}", "patterns.0.archive.when"),
        ("when: {a: {$nope: 1}}", "patterns.0.archive.when"),
        ("when: {a: 1}, into: \"orders\"", "patterns.0.archive.into"),
        ("when: {a: 1}, into: \"a$b\"", "patterns.0.archive.into"),
        ("when: {a: 1}, stamp: {_id: 1}", "patterns.0.archive.stamp._id"),
        ("when: {a: 1}, stamp: {\"a.b\": 1}", "patterns.0.archive.stamp.a.b"),
        ("when: {a: 1}, stamp: {t: \"$$NOW + x\"}", "patterns.0.archive.stamp"),
        ("when: {a: 1}, every: \"10ms\"", "patterns.0.archive.every"),
        ("when: {a: 1}, every: 3", "patterns.0.archive.every"),
        ("when: {a: 1}, batch: 0", "patterns.0.archive.batch"),
        ("when: {a: 1}, read: \"all\"", "patterns.0.archive.read"),
        ("when: {a: 1}, write: \"no\"", "patterns.0.archive.write"),
        ("when: {a: 1}, wen: 1", "patterns.0.archive.wen"),
    ] {
        let error = db.create("orders", &declared(options)).unwrap_err();
        assert_eq!(error.code(), Code::InvalidOptions, "{options}");
        assert!(error.message().starts_with(&format!("{path}: ")), "{options}: {}", error.message());
        assert!(db.begin().collection(&ns("orders")).unwrap().is_none());
        assert!(db.begin().collection(&ns("ordersArchive")).unwrap().is_none());
    }
}

#[test]
fn a14_a_point_read_finds_a_document_wherever_it_is() {
    let db = orders("");
    insert(&db, "{_id: 1, status: \"done\", n: 0}").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (db, stop) = (&db, &stop);
        scope.spawn(move || {
            // Back and forth: the run takes it away, the update brings it back.
            for _ in 0..100 {
                run(db, "orders");
                db.update("orders", "{_id: 1}", "{$inc: {n: 1}}").unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        for _ in 0..3 {
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    for filter in ["{_id: 1}", "{_id: {$in: [1, 2]}}", "{_id: 1, status: \"done\"}"] {
                        assert_eq!(db.find("orders", filter).len(), 1, "{filter}");
                    }
                }
            });
        }
    });
    assert_eq!(int(db.find("orders", "{_id: 1}")[0].as_raw(), "n"), 100);
}

#[test]
fn a15_a_write_brings_an_archived_document_back() {
    let db = orders("");
    insert(&db, "{_id: 1, status: \"done\", items: [1, 2, 3]}").unwrap();
    run(&db, "orders");
    let archived = db.raw("ordersArchive", "{}")[0].clone();
    // What changes nothing moves nothing.
    let same = db.update("orders", "{_id: 1}", "{$set: {status: \"done\"}}").unwrap();
    assert_eq!((same.matched, same.modified), (1, 0));
    assert_eq!(db.raw("ordersArchive", "{}").len(), 1);
    let done = db
        .update_with("orders", "{_id: 1, items: 2}", "{$set: {\"items.$\": 9}}", |update| update.want = Want::Before)
        .unwrap();
    assert_eq!((done.matched, done.modified, done.image), (1, 1, Some(archived)));
    assert_eq!(db.raw("orders", "{}"), [json("{_id: 1, status: \"done\", items: [1, 9, 3]}")]);
    assert!(db.raw("ordersArchive", "{}").is_empty());
    run(&db, "orders");
    // By a stamp.
    let done = db.update("orders", "{_id: 1, reason: \"old\"}", "{$set: {status: \"open\"}}").unwrap();
    assert_eq!((done.matched, done.modified), (1, 1));
    assert_eq!(run(&db, "orders"), (0, 0));
    db.update("orders", "{_id: 1}", "{$set: {status: \"done\"}}").unwrap();
    run(&db, "orders");
    assert_eq!(db.delete("orders", "{_id: 1}", false).unwrap(), 1);
    assert!(db.find("orders", "{_id: 1}").is_empty());
    assert!(db.raw("ordersArchive", "{}").is_empty());
}

#[test]
fn a15_an_upsert_makes_no_shadow() {
    for read in ["active", "union"] {
        let db = orders(&format!(", read: \"{read}\""));
        insert(&db, "{_id: 1, status: \"done\", number: 7}").unwrap();
        run(&db, "orders");
        let by_id = db.update_with("orders", "{_id: 1}", "{$set: {a: 1}}", |update| update.upsert = true).unwrap();
        assert_eq!((by_id.matched, by_id.modified, by_id.upserted_id.is_some()), (1, 1, false));
        run(&db, "orders");
        let by_number =
            db.update_with("orders", "{number: 7}", "{$set: {a: 2}}", |update| update.upsert = true).unwrap();
        assert_eq!((by_number.matched, by_number.modified, by_number.upserted_id.is_some()), (1, 1, false), "{read}");
        run(&db, "orders");
        let many = db.update_with("orders", "{number: 7}", "{$set: {a: 3}}", |update| {
            (update.upsert, update.multi) = (true, true);
        });
        assert_eq!(many.unwrap().matched, 1);
        assert_eq!(db.raw("orders", "{}"), [json("{_id: 1, status: \"done\", number: 7, a: 3}")]);
    }
}

#[test]
fn a15_writes_are_refused_if_declared_so() {
    let db = orders(", write: \"refuse\", read: \"union\"");
    insert(&db, "{_id: 1, status: \"done\"}").unwrap();
    insert(&db, "{_id: 2, status: \"open\"}").unwrap();
    run(&db, "orders");
    let refused = |result: Result<u64, Error>| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::CommandNotSupported);
        assert!(error.message().contains("pattern 'archive'"), "{}", error.message());
    };
    let update = |filter: &str, multi: bool| {
        db.update_with("orders", filter, "{$set: {a: 1}}", |update| update.multi = multi).map(|done| done.matched)
    };
    refused(update("{_id: 1}", false));
    refused(update("{}", true));
    refused(db.delete("orders", "{_id: 1}", false));
    refused(db.delete("orders", "{}", true));
    // Nothing of a write of many was done.
    assert_eq!(db.raw("orders", "{}"), [json("{_id: 2, status: \"open\"}")]);
    assert_eq!(update("{_id: 2}", false).unwrap(), 1);
    assert_eq!(update("{status: \"open\"}", true).unwrap(), 1);
}

#[test]
fn a16_keys_are_unique_across_both() {
    let db = orders("");
    create_index(&db, "{key: {number: 1}, name: \"number_1\", unique: true}").unwrap();
    insert(&db, "{_id: 1, status: \"done\", number: 7}").unwrap();
    insert(&db, "{_id: 2, status: \"open\", number: 8}").unwrap();
    run(&db, "orders");
    let taken = |result: Result<(), Error>, what: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::DuplicateKey);
        assert!(error.message().contains(&format!("collection: shop.orders index: {what} ")), "{}", error.message());
    };
    taken(insert(&db, "{_id: 1, number: 1}"), "_id_");
    taken(insert(&db, "{_id: 3, number: 7}"), "number_1");
    taken(db.update("orders", "{_id: 2}", "{$set: {number: 7}}").map(drop), "number_1");
    taken(db.update("orders", "{_id: 2}", "{number: 7}").map(drop), "number_1");
    assert_eq!(db.raw("orders", "{}"), [json("{_id: 2, status: \"open\", number: 8}")]);
    // What is deleted there is free.
    db.delete("orders", "{_id: 1}", false).unwrap();
    insert(&db, "{_id: 1, number: 7}").unwrap();
    db.assert_valid("orders");
}

#[test]
fn a16_a_unique_index_that_does_not_hold_across_both_is_not_made() {
    let db = orders("");
    insert(&db, "{_id: 1, status: \"done\", number: 7}").unwrap();
    run(&db, "orders");
    insert(&db, "{_id: 2, status: \"open\", number: 7}").unwrap();
    let error = create_index(&db, "{key: {number: 1}, name: \"number_1\", unique: true}").unwrap_err();
    assert_eq!(error.code(), Code::DuplicateKey);
    for name in ["orders", "ordersArchive"] {
        assert_eq!(db.begin().indexes(&ns(name)).unwrap().len(), 1, "{name}");
    }
    create_index(&db, "{key: {number: 1}, name: \"number_1\"}").unwrap();
    for name in ["orders", "ordersArchive"] {
        assert_eq!(db.begin().indexes(&ns(name)).unwrap().len(), 2, "{name}");
    }
    let mut tx = db.begin();
    tx.drop_index(&ns("orders"), "number_1").unwrap();
    tx.commit().unwrap();
    assert_eq!(db.begin().indexes(&ns("ordersArchive")).unwrap().len(), 1);
}

#[test]
fn stamps_belong_to_the_pattern() {
    let db = orders("");
    insert(&db, "{_id: 1, status: \"open\"}").unwrap();
    let refused = |error: Error| {
        assert_eq!(error.code(), Code::ImmutableField);
        assert!(error.message().contains("pattern 'archive'"), "{}", error.message());
    };
    refused(insert(&db, "{_id: 2, reason: \"x\"}").unwrap_err());
    refused(db.update("orders", "{_id: 1}", "{$set: {reason: \"x\"}}").unwrap_err());
    refused(db.update("orders", "{_id: 1}", "{reason: \"x\"}").unwrap_err());
    refused(db.update("orders", "{_id: 1}", "[{$set: {archivedAt: 1}}]").unwrap_err());
    assert_eq!(db.raw("orders", "{}"), [json("{_id: 1, status: \"open\"}")]);
    let direct = db.insert("ordersArchive", &[json("{_id: 9}")]).unwrap_err();
    assert!(direct.message().contains("pattern 'archive'"), "{}", direct.message());
    // A collection whose documents have such a field cannot be declared one.
    db.create("old", "{}").unwrap();
    db.insert("old", &[json("{_id: 1, reason: 2}")]).unwrap();
    let error = db.modify("old", &declared(BY_STATUS)).unwrap_err();
    assert!(error.message().contains("archive.stamp.reason"), "{}", error.message());
    assert!(db.begin().collection(&ns("oldArchive")).unwrap().is_none());
}

#[test]
fn a_union_is_read_in_order() {
    let db = orders(", read: \"union\"");
    for id in 0..40 {
        let status = if id % 3 == 0 { "done" } else { "open" };
        insert(&db, &format!("{{_id: {id}, status: \"{status}\", n: {}}}", (id * 7) % 10)).unwrap();
    }
    run(&db, "orders");
    for indexed in [false, true] {
        if indexed {
            create_index(&db, "{key: {n: 1, _id: 1}, name: \"n_1\"}").unwrap();
        }
        let all = db.find_with("orders", "{}", |find| sorted(find, "{n: 1, _id: -1}")).unwrap();
        let keys: Vec<(i64, i64)> = all.iter().map(|d| (int(d.as_raw(), "n"), -int(d.as_raw(), "_id"))).collect();
        assert_eq!(keys.len(), 40);
        assert!(keys.is_sorted());
        let page = db
            .find_with("orders", "{}", |find| {
                sorted(find, "{n: 1, _id: -1}");
                (find.skip, find.limit) = (13, Some(9));
                find.projection = common::projection("{_id: 1}", "{}");
            })
            .unwrap();
        let expected: Vec<i64> = all[13..22].iter().map(|d| int(d.as_raw(), "_id")).collect();
        assert_eq!(ids(&page), expected);
        assert!(page.iter().all(|doc| doc.as_raw().count() == 1));
    }
    let chained = db.find_with("orders", "{}", |find| (find.skip, find.limit) = (25, Some(10))).unwrap();
    assert_eq!(chained.len(), 10);
    let at = db.begin();
    let mut find = Find::new(Arc::new(espalier_query::Filter::empty()), context());
    assert_eq!(at.count(&ns("orders"), &find).unwrap(), 40);
    (find.skip, find.limit) = (30, Some(20));
    assert_eq!(at.count(&ns("orders"), &find).unwrap(), 10);
    (find.skip, find.limit) = (0, None);
    assert_eq!(at.distinct(&ns("orders"), "status", &find).unwrap().len(), 2);
    assert_eq!(at.coll_stats(&ns("orders")).unwrap().count, 40);
    let plan = at.explain(&ns("orders"), &find, Verbosity::ExecutionStats).unwrap();
    let about = plan.as_raw().get_doc("patterns").unwrap().get_doc("archive").unwrap();
    assert_eq!(int(about, "nReturned"), 40);
    find.show_record_id = true;
    let refused = at.find(&ns("orders"), &find).err().unwrap();
    assert!(refused.message().contains("pattern 'archive'"), "{}", refused.message());
}

#[test]
fn an_active_read_sees_the_active_documents() {
    let db = orders("");
    insert(&db, "{_id: 1, status: \"done\"}").unwrap();
    insert(&db, "{_id: 2, status: \"open\"}").unwrap();
    run(&db, "orders");
    assert_eq!(ids(&db.find("orders", "{}")), [2]);
    assert_eq!(ids(&db.find("orders", "{_id: {$gt: 0}}")), [2]);
    assert_eq!(ids(&db.find("orders", "{_id: {$in: [1, 2]}}")), [2, 1]);
    assert_eq!(db.delete("orders", "{}", true).unwrap(), 1);
    assert_eq!(db.raw("ordersArchive", "{}").len(), 1);
    let stats = db.begin().coll_stats(&ns("orders")).unwrap();
    assert_eq!(stats.count, 0);
    let health = stats.patterns.unwrap();
    assert_eq!(int(health.as_raw(), "archivedDocuments"), 1);
    assert_eq!(int(health.as_raw().get_doc("lastRun").unwrap(), "moved"), 1);
}

#[test]
fn a_transaction_sees_its_own_thaw_and_takes_it_back() {
    let db = orders("");
    insert(&db, "{_id: 1, status: \"done\"}").unwrap();
    run(&db, "orders");
    let mut tx = db.begin_as(Mode::Transaction, false);
    tx.update(&ns("orders"), &common::update_spec("{_id: 1}", "{$set: {a: 1}}").unwrap()).unwrap();
    assert_eq!(ids(&common::find(&*tx, "orders", "{}", |_| {}).unwrap()), [1]);
    assert!(db.find("orders", "{}").is_empty());
    tx.abort();
    assert_eq!(db.raw("ordersArchive", "{}").len(), 1);
    let mut tx = db.begin_as(Mode::Transaction, false);
    tx.update(&ns("orders"), &common::update_spec("{_id: 1}", "{$set: {a: 1}}").unwrap()).unwrap();
    tx.commit().unwrap();
    assert!(db.raw("ordersArchive", "{}").is_empty());
}

#[test]
fn declared_on_data_nothing_moves_and_dropped_everything_comes_back() {
    let db = Db::new();
    db.create("orders", "{}").unwrap();
    create_index(&db, "{key: {number: 1}, name: \"number_1\", unique: true}").unwrap();
    let docs: Vec<DocBuf> = (0..50).map(|id| json(&format!("{{_id: {id}, status: \"done\", number: {id}}}"))).collect();
    db.insert("orders", &docs).unwrap();
    db.modify("orders", &declared(BY_STATUS)).unwrap();
    assert_eq!(db.raw("orders", "{}").len(), 50);
    assert_eq!(db.begin().indexes(&ns("ordersArchive")).unwrap().len(), 2);
    run(&db, "orders");
    assert_eq!(db.raw("orders", "{}").len(), 0);
    // Another time or way to read needs no migration, other stamps do.
    db.modify("orders", &declared(&format!("{BY_STATUS}, read: \"union\", every: \"2h\", batch: 7"))).unwrap();
    assert_eq!(db.raw("ordersArchive", "{}").len(), 50);
    db.modify("orders", &declared("when: {status: \"done\"}, stamp: {}")).unwrap();
    assert_eq!(db.raw("orders", "{}").len(), 50);
    run(&db, "orders");
    db.modify("orders", "{}").unwrap();
    let mut back = db.raw("orders", "{}");
    back.sort_by_key(|doc| int(doc.as_raw(), "_id"));
    assert_eq!(back, docs);
    assert!(db.begin().collection(&ns("ordersArchive")).unwrap().is_none());
}

#[test]
fn clients_write_while_everything_comes_back() {
    let db = orders("");
    let docs: Vec<DocBuf> = (0..300).map(|id| json(&format!("{{_id: {id}, status: \"done\", n: 0}}"))).collect();
    db.insert("orders", &docs).unwrap();
    run(&db, "orders");
    let done = AtomicBool::new(false);
    let mut added = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            db.modify("orders", "{}").unwrap();
            done.store(true, Ordering::Relaxed);
        });
        let mut random = Random(5);
        while !done.load(Ordering::Relaxed) {
            let id = random.below(300);
            let updated = db.update("orders", &format!("{{_id: {id}}}"), "{$inc: {n: 1}}").unwrap();
            assert_eq!(updated.matched, 1, "{id}");
            added += 1;
            assert_eq!(insert(&db, &format!("{{_id: {id}}}")).unwrap_err().code(), Code::DuplicateKey, "{id}");
        }
    });
    let all = db.find("orders", "{}");
    assert_eq!(all.len(), 300);
    assert_eq!(all.iter().map(|doc| int(doc.as_raw(), "n")).sum::<i64>(), added);
}
