//! Counters with the approximate pattern, flushed: what waits gets into the document in time, once, whatever happens meanwhile.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use common::counters::{PATIENT, declared, health, inc, number, one, run, stored, with};
use common::{Db, context, json, ns, plain, update_spec};
use espalier_query::Interrupt;
use espalier_store::feed::{Scope as Watched, Watch};
use espalier_store::{Mode, Store, Want};
use espalier_value::doc;

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_document_is_rewritten_after_so_many_increments() {
    let db = declared(&with("flush: {count: 5, within: \"1h\"}"));
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    for expected in [0, 0, 0, 0, 5, 5, 5, 5, 5, 10, 10] {
        inc(&db, "1");
        assert_eq!(number(&stored(&db), "m.views"), expected);
    }
    assert_eq!(number(&one(&db), "m.views"), 11);
    assert_eq!(number(&health(&db), "flushes"), 2);
}

/// D4: a tail that never reaches the count shows up all the same, without anybody asking.
#[test]
fn d4_the_tail_is_flushed_in_time() {
    let db = declared(&with("flush: {count: 100, within: \"200ms\"}, read: \"flushed\""));
    let mut tx = db.begin();
    let docs = [json("{_id: 1, m: {views: 0}}")];
    common::insert(&mut *tx, "products", &docs).unwrap();
    let mut update = update_spec("{_id: 1}", "{$inc: {\"m.views\": 99}}").unwrap();
    // The clock of the run is the server's.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    update.context = Arc::new(espalier_query::Context::new(now, 1));
    tx.update(&ns("products"), &update).unwrap();
    tx.commit().unwrap();
    assert_eq!(number(&one(&db), "m.views"), 0, "it was flushed at once");
    wait_until("the tail was never flushed", || number(&one(&db), "m.views") == 99);
    assert_eq!(db.raw("productsPending", "{}").len(), 0);
}

/// D5, D9: increments that arrive while a flush is under way are neither wiped nor counted twice, however many run at once.
#[test]
fn d5_d9_flushes_beside_increments_lose_and_double_nothing() {
    let db = Arc::new(declared(&with("flush: {count: 7, within: \"1h\"}")));
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..16)
            .map(|_| {
                let db = db.clone();
                scope.spawn(move || (0..60).for_each(|_| assert_eq!(inc(&db, "1"), (1, 1))))
            })
            .collect();
        for _ in 0..2 {
            let (db, stop) = (db.clone(), stop.clone());
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    run(&db);
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(number(&one(&db), "m.views"), 960);
    db.assert_valid("products");
    run(&db);
    assert_eq!(number(&stored(&db), "m.views"), 960);
}

/// D7, D8: neither windows nor clients' clocks decide what is counted.
#[test]
fn d7_d8_clocks_count_nothing_twice() {
    let db = declared(PATIENT);
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    for (minutes, _) in [(-600, 0), (600, 0), (0, 0), (5, 0)] {
        let mut tx = db.begin();
        let mut update = update_spec("{_id: 1}", "{$inc: {\"m.views\": 1}}").unwrap();
        update.context = Arc::new(espalier_query::Context::new(1_700_000_000_000 + minutes * 60_000, 3));
        tx.update(&ns("products"), &update).unwrap();
        tx.commit().unwrap();
        run(&db);
        run(&db);
    }
    assert_eq!(number(&stored(&db), "m.views"), 4);
}

/// D10: what waits is found whenever a run comes, with or without recent increments.
#[test]
fn d10_nothing_is_too_old_to_be_flushed() {
    let db = declared(PATIENT);
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    let mut update = update_spec("{_id: 1}", "{$inc: {\"m.views\": 3}}").unwrap();
    update.context = Arc::new(espalier_query::Context::new(0, 3));
    let mut tx = db.begin();
    tx.update(&ns("products"), &update).unwrap();
    tx.commit().unwrap();
    run(&db);
    assert_eq!((number(&stored(&db), "m.views"), db.raw("productsPending", "{}").len()), (3, 0));
}

/// D11: a hundred increments rewrite the document once.
#[test]
fn d11_the_document_is_written_once_for_many() {
    let db = declared(&with("flush: {count: 100, within: \"1h\"}"));
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    db.store.flush().unwrap();
    let start = db.store.time();
    (0..100).for_each(|_| assert_eq!(inc(&db, "1"), (1, 1)));
    db.store.flush().unwrap();
    let scope = Watched::Collection(ns("products"));
    let count = |raw| {
        let mut feed = db.store.changes(Watch { scope: scope.clone(), raw, after: start }).unwrap();
        std::iter::from_fn(|| feed.next_event(&Interrupt::default(), Some(Instant::now())).unwrap()).count()
    };
    assert_eq!((count(true), count(false)), (1, 100));
}

#[test]
fn other_writes_settle_what_waits() {
    let db = declared(PATIENT);
    let docs = [json("{_id: 1, t: 0, m: {views: 1}}")];
    db.insert("products", &docs).unwrap();
    inc(&db, "1");
    db.update("products", "{_id: 1}", "{$set: {t: 1}}").unwrap();
    assert_eq!(db.raw("productsPending", "{}").len(), 1, "it has nothing to do with the counters");
    assert_eq!(one(&db), json("{_id: 1, t: 1, m: {views: 2}}"));
    db.update("products", "{_id: 1}", "{$inc: {\"m.views\": 1}, $set: {t: 2}}").unwrap();
    assert_eq!((stored(&db), db.raw("productsPending", "{}").len()), (json("{_id: 1, t: 2, m: {views: 3}}"), 0));
    inc(&db, "1");
    db.update("products", "{_id: 1}", "{$set: {\"m.views\": 100}}").unwrap();
    inc(&db, "1");
    db.update("products", "{_id: 1}", "[{$set: {twice: {$multiply: [\"$m.views\", 2]}}}]").unwrap();
    assert_eq!(stored(&db), json("{_id: 1, t: 2, m: {views: 101}, twice: 202}"));
    inc(&db, "1");
    db.update("products", "{_id: 1}", "{u: 1}").unwrap();
    assert_eq!(one(&db), json("{_id: 1, u: 1}"));
    inc(&db, "1");
    db.delete("products", "{_id: 1}", false).unwrap();
    assert_eq!(db.raw("productsPending", "{}").len(), 0);
    db.insert("products", &docs).unwrap();
    assert_eq!(one(&db), docs[0]);
}

#[test]
fn flushed_reads_see_the_base() {
    let db = declared(&with("flush: {count: 100, within: \"1h\"}, read: \"flushed\""));
    db.insert("products", &[json("{_id: 1, m: {views: 46167}}")]).unwrap();
    (0..99).for_each(|_| assert_eq!(inc(&db, "1"), (1, 1)));
    assert_eq!(one(&db), json("{_id: 1, m: {views: 46167}}"));
    assert_eq!(db.find("products", "{\"m.views\": {$gt: 46167}}").len(), 0);
    inc(&db, "1");
    assert_eq!(number(&one(&db), "m.views"), 46267);
}

#[test]
fn many_clients_count_exactly_and_readers_see_it_grow() {
    const CLIENTS: i64 = 24;
    const EACH: i64 = 50;
    let db = Arc::new(declared(&with("flush: {count: 40, within: \"100ms\"}")));
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    let (left, acknowledged) = (Arc::new(AtomicI64::new(CLIENTS)), Arc::new(AtomicI64::new(0)));
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (db, left, acknowledged) = (db.clone(), left.clone(), acknowledged.clone());
            scope.spawn(move || {
                let mut last = 0;
                for n in 0..EACH {
                    let text = "{$inc: {\"m.views\": 1, likes: 2}}";
                    let image = db.update_with("products", "{_id: 1}", text, |u| u.want = Want::After).unwrap().image;
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                    let value = number(&image.unwrap(), "m.views");
                    assert!(value > last, "client {client}, {n}: {value} after {last}");
                    last = value;
                }
                left.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let (db, left) = (db.clone(), left.clone());
        scope.spawn(move || {
            let mut last = 0;
            while left.load(Ordering::SeqCst) > 0 {
                let least = acknowledged.load(Ordering::SeqCst);
                let doc = one(&db);
                let views = number(&doc, "m.views");
                assert!(views >= last && views >= least, "{views} after {last}, {least} acknowledged");
                if views > 0 {
                    assert_eq!(number(&doc, "likes"), 2 * views);
                }
                last = views;
            }
        });
    });
    let doc = one(&db);
    assert_eq!((number(&doc, "m.views"), number(&doc, "likes")), (CLIENTS * EACH, 2 * CLIENTS * EACH));
    db.assert_valid("products");
}

#[test]
fn is_declared_and_dropped_while_clients_count() {
    let db = Arc::new(Db::new());
    db.create("products", "{}").unwrap();
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let total: i64 = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..6)
            .map(|_| {
                let (db, stop) = (db.clone(), stop.clone());
                scope.spawn(move || {
                    let mut count = 0;
                    while !stop.load(Ordering::Relaxed) {
                        assert_eq!(inc(&db, "1"), (1, 1));
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for _ in 0..3 {
            db.modify("products", &with("flush: {count: 30, within: \"1h\"}")).unwrap();
            std::thread::sleep(Duration::from_millis(30));
            db.assert_valid("products");
            // Options that say nothing about what is stored change at once.
            db.modify("products", &with("flush: {count: 1000, within: \"1m\"}, read: \"exact\"")).unwrap();
            std::thread::sleep(Duration::from_millis(30));
            db.modify("products", "{patterns: []}").unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(number(&stored(&db), "m.views"), total);
    assert!(db.begin().collection(&ns("productsPending")).unwrap().is_none());
}

#[test]
fn validate_finds_and_mends_what_others_did_to_stored_documents() {
    let db = declared(PATIENT);
    db.insert("products", &[json("{_id: 1, m: {views: 10}}"), json("{_id: 2, likes: 1}")]).unwrap();
    inc(&db, "5");
    db.update("products", "{_id: 2}", "{$inc: {likes: 1}}").unwrap();
    let mut tx = db.begin_as(Mode::Auto, true);
    tx.update(&ns("products"), &update_spec("{_id: 1}", "{$set: {\"m.views\": 100}}").unwrap()).unwrap();
    tx.delete(&ns("products"), &common::delete_spec("{_id: 2}", false).unwrap()).unwrap();
    tx.commit().unwrap();
    let report = db.validate("products", false);
    assert_eq!(number(&report, "patterns.violations"), 2, "{report:?}");
    let report = db.validate("products", true);
    assert_eq!((number(&report, "patterns.violations"), number(&report, "patterns.repaired")), (0, 2), "{report:?}");
    assert_eq!((number(&one(&db), "m.views"), db.raw("productsPending", "{}").len()), (105, 0));
}

#[test]
fn without_durable_increments_count_all_the_same() {
    let db = declared(&with("flush: {count: 10, within: \"1h\"}, durable: false"));
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    for expected in 1..=25 {
        let mut tx = db.begin();
        tx.update(&ns("products"), &update_spec("{_id: 1}", "{$inc: {\"m.views\": 1}}").unwrap()).unwrap();
        let token = tx.commit().unwrap();
        assert_eq!(token.position, 0, "nobody waits for the disk");
        assert_eq!(number(&one(&db), "m.views"), expected);
    }
    assert_eq!(number(&stored(&db), "m.views"), 20);
    assert_eq!(plain(&stored(&db), &["m"]), json("{_id: 1}"));
}

#[test]
fn derivations_follow_increments_and_leave_counters_alone() {
    let db = Arc::new(Db::new());
    let reviews =
        "{computed: {from: \"reviews\", on: {product: \"_id\"}, into: \"summary\", fields: {n: {$count: {}}}}}";
    for read in ["exact", "flushed"] {
        let (products, shops) = (format!("products_{read}"), format!("shops_{read}"));
        let counters =
            format!("{{approximate: {{fields: [\"likes\"], flush: {{count: 7, within: \"1h\"}}, read: \"{read}\"}}}}");
        db.create(&products, &format!("{{patterns: [{counters}, {reviews}]}}")).unwrap();
        let sums = format!(
            "{{computed: {{from: \"{products}\", on: {{shop: \"_id\"}}, into: \"s\", fields: {{likes: {{$sum: \"$likes\"}}}}}}}}"
        );
        db.insert(&products, &[json("{_id: 1, shop: 1, likes: 0}"), json("{_id: 2, shop: 1, likes: 0}")]).unwrap();
        db.update(&products, "{_id: 1}", "{$inc: {likes: 3}}").unwrap();
        db.create(&shops, "{}").unwrap();
        db.insert(&shops, &[json("{_id: 1}")]).unwrap();
        db.modify(&shops, &format!("{{patterns: [{sums}]}}")).unwrap();
        std::thread::scope(|scope| {
            for client in 0..8 {
                let (db, products) = (db.clone(), products.clone());
                scope.spawn(move || {
                    for n in 0..15 {
                        let filter = format!("{{_id: {}}}", 1 + (client + n) % 2);
                        db.update(&products, &filter, "{$inc: {likes: 1}}").unwrap();
                        db.insert(
                            "reviews",
                            &[doc! { "_id": format!("{products} {client} {n}").as_str(), "product": 1 }],
                        )
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(number(&db.find(&shops, "{}")[0], "s.likes"), 123);
        db.store.run_pattern(&ns(&products), &context()).unwrap();
        let stored: i64 = db.raw(&products, "{}").iter().map(|doc| number(doc, "likes")).sum();
        assert_eq!(stored, 123);
        db.assert_valid(&products);
        db.assert_valid(&shops);
    }
    assert_eq!(number(&db.find("products_exact", "{_id: 1}")[0], "summary.n"), 240);
}

/// A flush by count leaves a pending document without increments, so that the next increment is one write again. Nobody
/// sees anything of it, and it does not stay for long.
#[test]
fn a_flush_leaves_a_spare_that_nobody_notices() {
    let db = declared(&with("flush: {count: 3, within: \"1h\"}"));
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    let spares = |expected: usize| {
        let pending = db.raw("productsPending", "{}");
        assert_eq!(pending.len(), expected, "{pending:?}");
        assert!(pending.iter().all(|doc| number(doc, "increments") == 0), "{pending:?}");
        assert_eq!(number(&health(&db), "pendingDocuments"), 0);
        db.assert_valid("products");
    };
    let flush = |views: i64| {
        (0..3).for_each(|_| assert_eq!(inc(&db, "1"), (1, 1)));
        assert_eq!((number(&stored(&db), "m.views"), number(&one(&db), "m.views")), (views, views));
        spares(1);
    };
    flush(3);
    // Another write of the counter, by a client and behind the pattern's back: neither is forgotten.
    db.update("products", "{_id: 1}", "{$set: {\"m.views\": 100}}").unwrap();
    spares(0);
    flush(103);
    let mut tx = db.begin_as(Mode::Auto, true);
    tx.update(&ns("products"), &update_spec("{_id: 1}", "{$set: {\"m.views\": 50}}").unwrap()).unwrap();
    tx.commit().unwrap();
    assert_eq!(number(&one(&db), "m.views"), 50);
    flush(53);
    // A write beside the counters leaves it, a delete does not.
    db.update("products", "{_id: 1}", "{$set: {name: \"x\"}}").unwrap();
    flush(56);
    db.delete("products", "{_id: 1}", false).unwrap();
    spares(0);
    db.insert("products", &[json("{_id: 1, m: {views: 7}}")]).unwrap();
    flush(10);
    // Dropping the pattern leaves nothing behind.
    db.modify("products", "{}").unwrap();
    assert_eq!(number(&one(&db), "m.views"), 10);
}

#[test]
fn a_spare_that_nobody_needs_goes_in_time() {
    let db = declared(&with("flush: {count: 2, within: \"200ms\"}"));
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    (0..2).for_each(|_| assert_eq!(inc(&db, "1"), (1, 1)));
    assert_eq!(db.raw("productsPending", "{}").len(), 1);
    wait_until("the spare pending document stayed", || db.raw("productsPending", "{}").is_empty());
    assert_eq!(number(&one(&db), "m.views"), 2);
}
