//! The archive pattern: what it promises, case by case. The names begin with the defect of the hand-written archive job
//! that the case is about, where there is one.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use common::{Db, Random, context, json, ns};
use espalier_patterns::Patterned;
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_store::{Find, IndexSpec, Mode, Store, Verbosity, Want};
use espalier_value::{Code, DocBuf, Error, RawDoc, ValueRef, doc};

const DAY_MS: i64 = 86_400_000;
/// The time of the tests' commands.
const NOW_MS: i64 = 1_700_000_000_000;

const BY_STATUS: &str = "when: {status: \"done\"}, stamp: {archivedAt: \"$$NOW\", reason: \"old\"}";

fn declared(options: &str) -> String {
    format!("{{patterns: [{{archive: {{{options}}}}}]}}")
}

/// A collection `orders` with these options beside the usual.
fn orders(more: &str) -> Db {
    let db = Db::new();
    db.create("orders", &declared(&format!("{BY_STATUS}{more}"))).unwrap();
    db
}

fn run(db: &Db, name: &str) -> (i64, i64) {
    let report = db.store.run_pattern(&ns(name), &context()).unwrap().unwrap();
    (int(report.as_raw(), "moved"), int(report.as_raw(), "kept"))
}

fn int(doc: RawDoc<'_>, name: &str) -> i64 {
    match doc.get(name) {
        Some(ValueRef::Int32(n)) => n.into(),
        Some(ValueRef::Int64(n)) => n,
        other => panic!("{name}: {other:?} in {doc:?}"),
    }
}

fn insert(db: &Db, text: &str) -> Result<(), Error> {
    match db.insert("orders", &[json(text)]).unwrap().errors.into_iter().next() {
        None => Ok(()),
        Some((_, error)) => Err(error),
    }
}

fn sorted(find: &mut Find, by: &str) {
    find.sort = Sort::parse(json(by).as_raw(), &Scope::default()).unwrap().map(Arc::new);
}

fn ids(docs: &[DocBuf]) -> Vec<i64> {
    docs.iter().map(|doc| int(doc.as_raw(), "_id")).collect()
}

fn create_index(db: &Db, spec: &str) -> Result<(), Error> {
    let spec = IndexSpec::parse(json(spec).as_raw()).unwrap();
    let mut tx = db.begin();
    tx.create_indexes(&ns("orders"), &[spec])?;
    tx.commit().map(drop)
}

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
fn a_run_moves_what_is_due_and_stamps_it() {
    let db = orders("");
    insert(&db, "{_id: 1, status: \"done\", n: 1}").unwrap();
    insert(&db, "{_id: 2, status: \"open\", n: 2}").unwrap();
    assert_eq!(run(&db, "orders"), (1, 0));
    assert_eq!(ids(&db.raw("orders", "{}")), [2]);
    let mut expected = json("{_id: 1, status: \"done\", n: 1}");
    expected.append("archivedAt", ValueRef::DateTime(NOW_MS)).append("reason", "old");
    assert_eq!(db.raw("ordersArchive", "{}"), [expected.clone()]);
    assert_eq!(db.find("orders", "{_id: 1}"), [expected]);
    assert_eq!(run(&db, "orders"), (0, 0));
    db.assert_valid("orders");
}

#[test]
fn a17_times_are_taken_when_a_run_begins_and_only_dates_match() {
    let db = Db::new();
    db.create("orders", &declared("when: {at: {$lt: \"$$NOW - 90d\"}}, every: \"1d\"")).unwrap();
    let at = |days: i64| ValueRef::DateTime(NOW_MS - days * DAY_MS);
    let docs = [
        doc! { "_id": 1, "at": at(91) },
        doc! { "_id": 2, "at": at(89) },
        doc! { "_id": 3, "at": "1999-01-01" },
        doc! { "_id": 4 },
        doc! { "_id": 5, "at": at(90) },
    ];
    db.insert("orders", &docs).unwrap();
    assert_eq!(run(&db, "orders"), (1, 0));
    assert_eq!(ids(&db.raw("ordersArchive", "{}")), [1]);
}

#[test]
fn a11_a_document_that_is_in_the_archive_already_stops_no_other() {
    let db = orders(", batch: 2");
    for id in 1..=7 {
        insert(&db, &format!("{{_id: {id}, status: \"done\"}}")).unwrap();
    }
    // As a job that was cut off between insert and delete would leave it.
    let mut raw = db.begin_as(Mode::Auto, true);
    common::insert(
        &mut *raw,
        "ordersArchive",
        &[json("{_id: 1, status: \"done\"}"), json("{_id: 3, status: \"was\"}")],
    )
    .unwrap();
    raw.commit().unwrap();
    let report = db.validate("orders", false);
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(false))), "{report:?}");
    assert_eq!(int(report.as_raw().get_doc("patterns").unwrap(), "violations"), 2);
    assert_eq!(run(&db, "orders"), (5, 2));
    let report = db.validate("orders", true);
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(true))), "{report:?}");
    assert_eq!(run(&db, "orders"), (2, 0));
    assert_eq!(db.raw("ordersArchive", "{}").len(), 7);
    db.assert_valid("orders");
}

#[test]
fn a11_a_run_that_is_cut_off_goes_on_when_the_store_is_opened_again() {
    let db = orders(", every: \"1d\", batch: 10");
    let docs: Vec<DocBuf> = (0..400).map(|id| json(&format!("{{_id: {id}, status: \"done\"}}"))).collect();
    db.insert("orders", &docs).unwrap();
    std::thread::scope(|scope| {
        let runner = scope.spawn(|| db.store.run_pattern(&ns("orders"), &context()));
        while db.raw("ordersArchive", "{}").len() < 5 {
            std::thread::yield_now();
        }
        db.store.close();
        // It may have been at its end already.
        let _ = runner.join().unwrap();
    });
    let (active, archived) = (db.raw("orders", "{}").len(), db.raw("ordersArchive", "{}").len());
    assert_eq!(active + archived, 400);
    let again = Patterned::open(Arc::new(db.engine.clone())).unwrap();
    let since = Instant::now();
    while db.raw("ordersArchive", "{}").len() < 400 {
        assert!(since.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    again.close();
    assert!(db.raw("orders", "{}").is_empty());
}

#[test]
fn a12_an_edit_between_finding_and_moving_is_not_lost() {
    let db = orders(", read: \"union\"");
    let total = AtomicI64::new(0);
    for id in 0..20 {
        insert(&db, &format!("{{_id: {id}, status: \"done\", n: 0}}")).unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (db, total) = (&db, &total);
            scope.spawn(move || {
                let mut random = Random(thread);
                for _ in 0..60 {
                    let id = random.below(20);
                    let done = db.update("orders", &format!("{{_id: {id}}}"), "{$inc: {n: 1}}").unwrap();
                    assert_eq!((done.matched, done.modified), (1, 1));
                    total.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let (db, stop) = (&db, &stop);
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                run(db, "orders");
            }
        });
        scope.spawn(move || {
            while total_of(db, 240) < 240 {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
    assert_eq!(total.load(Ordering::Relaxed), 240);
    assert_eq!(total_of(&db, 240), 240);
    db.assert_valid("orders");
}

fn total_of(db: &Db, most: i64) -> i64 {
    let sum = db.find("orders", "{}").iter().map(|doc| int(doc.as_raw(), "n")).sum();
    assert!(sum <= most, "{sum}");
    sum
}

#[test]
fn a13_two_runs_at_once_are_one_after_the_other() {
    let db = orders("");
    let docs: Vec<DocBuf> = (0..100).map(|id| json(&format!("{{_id: {id}, status: \"done\"}}"))).collect();
    db.insert("orders", &docs).unwrap();
    let moved = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| run(&db, "orders"))).collect();
        runs.into_iter().map(|run| run.join().unwrap().0).collect::<Vec<_>>()
    });
    assert_eq!(moved.iter().sum::<i64>(), 100);
    assert_eq!(moved.iter().filter(|moved| **moved > 0).count(), 1, "{moved:?}");
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

#[test]
fn the_scheduler_runs_of_itself_and_follows_a_rename() {
    let db = Db::new();
    db.create("orders", &declared(&format!("{BY_STATUS}, every: \"1s\""))).unwrap();
    insert(&db, "{_id: 1, status: \"done\"}").unwrap();
    let archived = |count: usize| {
        let since = Instant::now();
        while db.raw("ordersArchive", "{}").len() < count {
            assert!(since.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    archived(1);
    let mut tx = db.begin();
    tx.rename(&ns("orders"), &ns("sales"), false).unwrap();
    tx.commit().unwrap();
    assert_eq!(db.insert("sales", &[json("{_id: 2, status: \"done\"}")]).unwrap().inserted, 1);
    archived(2);
    let mut tx = db.begin();
    assert!(tx.drop_collection(&ns("sales")).unwrap());
    tx.commit().unwrap();
    assert!(db.begin().collection(&ns("ordersArchive")).unwrap().is_none());
    assert!(db.store.run_pattern(&ns("sales"), &context()).unwrap().is_none());
}

#[test]
fn a_run_is_seen_while_it_works() {
    let db = orders("");
    let docs: Vec<DocBuf> = (0..500).map(|id| json(&format!("{{_id: {id}, status: \"done\"}}"))).collect();
    db.insert("orders", &docs).unwrap();
    let seen = std::thread::scope(|scope| {
        let runner = scope.spawn(|| run(&db, "orders"));
        let mut seen = None;
        while !runner.is_finished() {
            seen = db.store.jobs().into_iter().next().or(seen);
        }
        assert_eq!(runner.join().unwrap(), (500, 0));
        seen.unwrap()
    });
    assert_eq!(seen.as_raw().get_str("desc"), Some("PatternRun"));
    assert_eq!(seen.as_raw().get_str("ns"), Some("shop.orders"));
    assert!(db.store.jobs().is_empty());
}

/// A run holds a batch of `_id`s at a time, whatever there is to move.
#[test]
fn a17_a_run_goes_batch_by_batch() {
    let db = orders(", batch: 7");
    let docs: Vec<DocBuf> = (0..50).map(|id| json(&format!("{{_id: {id}, status: \"done\"}}"))).collect();
    db.insert("orders", &docs).unwrap();
    assert_eq!(run(&db, "orders"), (50, 0));
    assert_eq!(db.raw("ordersArchive", "{}").len(), 50);
    db.assert_valid("orders");
}

/// Sixteen threads: writers, readers and runs at once.
#[test]
fn nothing_is_lost_or_doubled_among_sixteen() {
    const DOCS: u64 = 24;
    let db = orders(", read: \"union\", batch: 5");
    create_index(&db, "{key: {number: 1}, name: \"number_1\", unique: true}").unwrap();
    for id in 0..DOCS {
        insert(&db, &format!("{{_id: {id}, status: \"open\", number: {id}, n: 0}}")).unwrap();
    }
    let (added, finished) = (AtomicI64::new(0), AtomicI64::new(0));
    std::thread::scope(|scope| {
        let (db, added, finished) = (&db, &added, &finished);
        for thread in 0..8 {
            scope.spawn(move || {
                let mut random = Random(100 + thread);
                for _ in 0..40 {
                    let id = random.below(DOCS);
                    let status = ["open", "done"][random.below(2) as usize];
                    let text = format!("{{$inc: {{n: 1}}, $set: {{status: \"{status}\"}}}}");
                    let filter = match random.below(3) {
                        0 => format!("{{number: {id}}}"),
                        _ => format!("{{_id: {id}}}"),
                    };
                    let upsert = random.below(2) == 0;
                    let done = db.update_with("orders", &filter, &text, |update| update.upsert = upsert).unwrap();
                    assert_eq!((done.matched, done.upserted_id.is_some()), (1, false), "{filter}");
                    added.fetch_add(1, Ordering::Relaxed);
                }
                finished.fetch_add(1, Ordering::Relaxed);
            });
        }
        for thread in 0..2 {
            scope.spawn(move || {
                let mut random = Random(200 + thread);
                for _ in 0..60 {
                    let id = random.below(DOCS);
                    let error = insert(db, &format!("{{_id: {}, number: {id}}}", 1000 + id)).unwrap_err();
                    assert_eq!(error.code(), Code::DuplicateKey);
                }
            });
        }
        for _ in 0..3 {
            scope.spawn(move || {
                while finished.load(Ordering::Relaxed) < 8 {
                    run(db, "orders");
                }
            });
        }
        for _ in 0..3 {
            scope.spawn(move || {
                while finished.load(Ordering::Relaxed) < 8 {
                    let all = db.find_with("orders", "{}", |find| sorted(find, "{_id: 1}")).unwrap();
                    assert_eq!(ids(&all), (0..DOCS as i64).collect::<Vec<_>>());
                }
            });
        }
    });
    assert_eq!(total_of(&db, 320), added.load(Ordering::Relaxed));
    assert_eq!(db.raw("orders", "{}").len() + db.raw("ordersArchive", "{}").len(), DOCS as usize);
    db.assert_valid("orders");
}
