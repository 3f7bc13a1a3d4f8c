//! The archive pattern: runs, which move what is due. The names begin with the defect of the hand-written archive job that
//! the case is about, where there is one.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use common::orders::{BY_STATUS, create_index, declared, ids, insert, int, orders, run, sorted};
use common::{Db, Random, context, json, ns};
use espalier_patterns::Patterned;
use espalier_store::{Mode, Store};
use espalier_value::{Code, DocBuf, ValueRef, doc};

const DAY_MS: i64 = 86_400_000;

/// The time of the tests' commands.
const NOW_MS: i64 = 1_700_000_000_000;

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
