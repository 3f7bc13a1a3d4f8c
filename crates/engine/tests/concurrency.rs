//! Many threads on one collection: nothing lost, nothing doubled, every index right at the end.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use common::*;
use espalier_value::{Code, DocBuf, ValueRef, doc};

const THREADS: i32 = 8;

#[test]
fn increments_of_one_document_are_all_counted() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1, "n": 0 }]);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let inc = update(&doc! { "_id": 1 }, &doc! { "$inc": &doc! { "n": 1 } });
                for _ in 0..250 {
                    assert_eq!(begin(&engine).update(&ns(), &inc).unwrap().modified, 1);
                }
            });
        }
    });
    let found = all(&engine, &find(&DocBuf::new()));
    assert!(matches!(found[0].as_raw().get("n"), Some(ValueRef::Int32(n)) if n == THREADS * 250));
    assert_valid(&engine);
}

#[test]
fn what_is_inserted_later_lies_behind() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": -1 }]);
    let running = AtomicU64::new(THREADS as u64);
    thread::scope(|scope| {
        for t in 0..THREADS {
            let (engine, running) = (&engine, &running);
            scope.spawn(move || {
                for batch in 0..20 {
                    let first = t * 10_000 + batch * 100;
                    let docs: Vec<DocBuf> = (first..first + 100).map(|id| doc! { "_id": id }).collect();
                    assert_eq!(insert(engine, &docs).inserted, 100);
                }
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let mut seen: Vec<i64> = Vec::new();
        while running.load(Ordering::Relaxed) > 0 {
            let now = ids(&engine, &find(&DocBuf::new()));
            assert_eq!(now.get(..seen.len()), Some(&seen[..]), "a document appeared before others that were there");
            assert!((now.len() - 1).is_multiple_of(100), "half a batch");
            seen = now;
        }
    });
    assert_valid(&engine);
}

#[test]
fn of_many_inserts_of_one_key_exactly_one_succeeds() {
    let engine = engine();
    begin(&engine).create_indexes(&ns(), &[index("k_1", &[("k", 1)], true)]).unwrap();
    let succeeded = AtomicU64::new(0);
    thread::scope(|scope| {
        for t in 0..THREADS {
            let (engine, succeeded) = (&engine, &succeeded);
            scope.spawn(move || {
                for k in 0..100 {
                    let done = insert(engine, &[doc! { "_id": t * 1000 + k, "k": k }]);
                    succeeded.fetch_add(done.inserted, Ordering::Relaxed);
                    assert!(done.errors.iter().all(|(_, e)| e.code() == Code::DuplicateKey));
                }
            });
        }
    });
    assert_eq!(succeeded.load(Ordering::Relaxed), 100);
    assert_eq!(begin(&engine).count(&ns(), &find(&DocBuf::new())).unwrap(), 100);
    assert_valid(&engine);
}

#[test]
fn racing_upserts_make_one_document() {
    let engine = engine();
    begin(&engine).create_indexes(&ns(), &[index("k_1", &[("k", 1)], true)]).unwrap();
    thread::scope(|scope| {
        for t in 0..THREADS {
            let engine = &engine;
            scope.spawn(move || {
                for k in 0..50 {
                    let mut up = update(&doc! { "k": k }, &doc! { "$inc": &doc! { "n": 1 } });
                    up.upsert = true;
                    up.new_id = [t as u8; 12];
                    up.new_id[11] = k as u8;
                    begin(engine).update(&ns(), &up).unwrap();
                }
            });
        }
    });
    let found = all(&engine, &find(&DocBuf::new()));
    assert_eq!(found.len(), 50);
    for doc in &found {
        assert!(matches!(doc.as_raw().get("n"), Some(ValueRef::Int32(n)) if n == THREADS), "{doc:?}");
    }
    assert_valid(&engine);
}

#[test]
fn an_index_built_under_writes_holds_everything() {
    let engine = engine();
    let docs: Vec<DocBuf> =
        (0..3000).map(|i| doc! { "_id": i, "a": i % 50, "tags": &array(&[i % 3, i % 7]) }).collect();
    insert(&engine, &docs);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for t in 0..3 {
            let (engine, stop) = (&engine, &stop);
            scope.spawn(move || {
                let mut i = 0;
                while !stop.load(Ordering::Relaxed) {
                    i += 1;
                    let id = (i * 7 + t * 1000) % 3000;
                    let set = doc! { "$set": &doc! { "a": i % 60 }, "$push": &doc! { "tags": i % 5 } };
                    begin(engine).update(&ns(), &update(&doc! { "_id": id }, &set)).unwrap();
                    if i % 10 == 0 {
                        begin(engine).delete(&ns(), &delete(&doc! { "_id": (id + 1) % 3000 }, false)).unwrap();
                        insert(engine, &[doc! { "_id": 10_000 + t * 100_000 + i, "a": i % 50 }]);
                    }
                }
            });
        }
        let specs = [index("a_1", &[("a", 1)], false), index("tags_1_a_-1", &[("tags", 1), ("a", -1)], false)];
        begin(&engine).create_indexes(&ns(), &specs).unwrap();
        stop.store(true, Ordering::Relaxed);
    });
    assert_valid(&engine);
    let by_index = begin(&engine).count(&ns(), &find(&doc! { "a": 7 })).unwrap();
    let mut scan = find(&doc! { "a": 7 });
    scan.hint = Some(espalier_store::Hint::Natural { reverse: false });
    assert_eq!(by_index, all(&engine, &scan).len() as u64);
}

#[test]
fn a_unique_build_over_duplicates_fails_and_leaves_nothing() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1, "k": 1 }, doc! { "_id": 2, "k": 1 }]);
    let failed = begin(&engine).create_indexes(&ns(), &[index("k_1", &[("k", 1)], true)]);
    assert_eq!(failed.unwrap_err().code(), Code::DuplicateKey);
    assert_eq!(begin(&engine).indexes(&ns()).unwrap().len(), 1);
    insert(&engine, &[doc! { "_id": 3, "k": 1 }]);
    assert_valid(&engine);
}

#[test]
fn a_cursor_keeps_its_snapshot() {
    let engine = engine();
    let docs: Vec<DocBuf> = (0..500).map(|i| doc! { "_id": i }).collect();
    insert(&engine, &docs);
    let mut cursor = begin(&engine).find(&ns(), &find(&DocBuf::new())).unwrap();
    assert!(cursor.advance().unwrap());
    begin(&engine).delete(&ns(), &delete(&DocBuf::new(), true)).unwrap();
    let mut rest = 1;
    while cursor.advance().unwrap() {
        rest += 1;
    }
    assert_eq!(rest, 500);
    assert!(ids(&engine, &find(&DocBuf::new())).is_empty());
}
