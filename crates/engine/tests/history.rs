//! What change streams are told: every write once, in order, with what it did; silent writes and announced events; what
//! is gone is said to be gone.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use espalier_engine::{Engine, EngineOptions};
use espalier_kv::{MemDisk, Options};
use espalier_query::Interrupt;
use espalier_store::*;
use espalier_value::{Code, DocBuf, RawDoc, doc};

fn watch(engine: &Engine, after: u64, scope: Scope, raw: bool) -> Box<dyn Feed> {
    engine.changes(Watch { scope, raw, after }).unwrap()
}

fn told(feed: &mut dyn Feed) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = feed.next_event(&Interrupt::default(), None).unwrap() {
        events.push(event);
    }
    events
}

fn show(event: &Event) -> String {
    let what = &event.what;
    let part = |name: &str, doc: &Option<DocBuf>| {
        doc.as_ref().map_or(String::new(), |doc| format!(" {name} {}", doc.as_raw()))
    };
    format!(
        "{} {}{}{}{}{}",
        what.kind.name(),
        what.ns,
        part("key", &what.key),
        part("doc", &what.document),
        part("before", &what.before),
        part("did", &what.description)
    )
}

fn shown(engine: &Engine, raw: bool) -> Vec<String> {
    engine.wait_durable(CommitToken::default()).unwrap();
    told(&mut *watch(engine, 0, Scope::Everything, raw)).iter().map(show).collect()
}

fn change(transaction: &mut dyn Transaction, id: i32, update_doc: &DocBuf) {
    transaction.update(&ns(), &update(&doc! { "_id": id }, update_doc)).unwrap();
}

fn transaction(engine: &Engine) -> Box<dyn Transaction> {
    engine.begin(Begin { mode: Mode::Transaction, want_changes: false, raw: false, context: context() }).unwrap()
}

fn insert_in(transaction: &mut dyn Transaction, docs: &[DocBuf]) {
    let raw: Vec<RawDoc<'_>> = docs.iter().map(DocBuf::as_raw).collect();
    let how = Insert { ordered: true, bypass_validation: false, statements: None, context: context() };
    assert!(transaction.insert(&ns(), &raw, &how).unwrap().errors.is_empty());
}

#[test]
fn every_write_is_told_with_what_it_did() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1, "a": 1 }, doc! { "_id": 2 }]);
    change(&mut *begin(&engine), 1, &doc! { "$set": &doc! { "a": 2 } });
    change(&mut *begin(&engine), 1, &doc! { "b": 3 });
    begin(&engine).delete(&ns(), &delete(&doc! { "_id": 2 }, false)).unwrap();
    // A change that changes nothing is none.
    change(&mut *begin(&engine), 1, &doc! { "$set": &doc! { "b": 3 } });
    let all = shown(&engine, false);
    assert!(all[0].starts_with("create test.c"), "{}", all[0]);
    assert_eq!(
        all[1..],
        [
            "insert test.c key { _id: 1 } doc { _id: 1, a: 1 }",
            "insert test.c key { _id: 2 } doc { _id: 2 }",
            "update test.c key { _id: 1 } doc { _id: 1, a: 2 } did { updatedFields: { a: 2 }, removedFields: [], \
             truncatedArrays: [] }",
            "replace test.c key { _id: 1 } doc { _id: 1, b: 3 }",
            "delete test.c key { _id: 2 }",
        ]
    );
}

#[test]
fn a_transaction_is_told_together_and_in_order_with_its_identity() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1 }]);
    let mut writes = transaction(&engine);
    writes.set_identity(TransactionId { lsid: doc! { "id": 7 }, number: 5 });
    insert_in(&mut *writes, &[doc! { "_id": 2 }]);
    change(&mut *writes, 2, &doc! { "$set": &doc! { "x": 1 } });
    writes.delete(&ns(), &delete(&doc! { "_id": 1 }, false)).unwrap();
    insert(&engine, &[doc! { "_id": 9 }]);
    let aborted = {
        let mut writes = transaction(&engine);
        insert_in(&mut *writes, &[doc! { "_id": 3 }]);
        writes
    };
    aborted.abort();
    writes.commit().unwrap();
    engine.wait_durable(CommitToken::default()).unwrap();
    let events = told(&mut *watch(&engine, 0, Scope::Collection(ns()), false));
    let kinds: Vec<_> = events[1..].iter().map(|event| (event.what.kind, event.index)).collect();
    use EventKind::*;
    assert_eq!(kinds, [(Insert, 0), (Insert, 0), (Insert, 0), (Update, 1), (Delete, 2)]);
    let together = &events[3..];
    assert!(together.iter().all(|event| event.stamp == together[0].stamp));
    assert!(together.iter().all(|event| event.transaction.as_ref().is_some_and(|id| id.number == 5)));
    assert!(events[..3].iter().all(|event| event.transaction.is_none()));
}

#[test]
fn silent_writes_are_told_only_raw_and_announced_events_only_otherwise() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1 }]);
    let start = engine.time();
    let mut writes = transaction(&engine);
    writes.set_silent(true);
    insert_in(&mut *writes, &[doc! { "_id": "part" }]);
    change(&mut *writes, 1, &doc! { "$set": &doc! { "count": 1 } });
    let mut event = Happening::new(Namespace::new("test", "logical"), EventKind::Update);
    event.key = Some(doc! { "_id": 1 });
    event.description = Some(doc! { "updatedFields": &doc! { "list.0": 7 } });
    writes.announce(event).unwrap();
    writes.set_silent(false);
    insert_in(&mut *writes, &[doc! { "_id": 2 }]);
    writes.commit().unwrap();
    engine.wait_durable(CommitToken::default()).unwrap();
    let seen = |raw| -> Vec<_> {
        told(&mut *watch(&engine, start, Scope::Everything, raw))
            .iter()
            .map(|event| (event.index, show(event)))
            .collect()
    };
    let stored = [
        (0, "insert test.c key { _id: \"part\" } doc { _id: \"part\" }".to_string()),
        (
            1,
            "update test.c key { _id: 1 } doc { _id: 1, count: 1 } did { updatedFields: { count: 1 }, removedFields: [], \
             truncatedArrays: [] }"
                .to_string(),
        ),
    ];
    let announced = (2, "update test.logical key { _id: 1 } did { updatedFields: { list.0: 7 } }".to_string());
    let last = (3, "insert test.c key { _id: 2 } doc { _id: 2 }".to_string());
    assert_eq!(seen(false), [announced, last.clone()]);
    assert_eq!(seen(true), [stored[0].clone(), stored[1].clone(), last]);
}

#[test]
fn pre_images_are_kept_where_asked_for() {
    let engine = engine();
    let listed = doc! { "changeStreamPreAndPostImages": &doc! { "enabled": true } };
    let options = CollectionOptions { pre_images: true, listed, ..CollectionOptions::default() };
    begin(&engine).create(&ns(), &options).unwrap();
    insert(&engine, &[doc! { "_id": 1, "a": 1 }]);
    change(&mut *begin(&engine), 1, &doc! { "$unset": &doc! { "a": 1 } });
    begin(&engine).delete(&ns(), &delete(&doc! { "_id": 1 }, false)).unwrap();
    let all = shown(&engine, false);
    assert!(all[2].contains("before { _id: 1, a: 1 }"), "{}", all[2]);
    assert_eq!(all[3], "delete test.c key { _id: 1 } before { _id: 1 }");
}

#[test]
fn many_documents_of_many_collections_are_told_to_who_watches_them() {
    let engine = engine();
    let mut writes = transaction(&engine);
    let names: Vec<_> = ["a", "b", "c"].map(|name| Namespace::new("test", name)).to_vec();
    for name in &names {
        begin(&engine).create(name, &CollectionOptions::default()).unwrap();
    }
    drop(writes);
    writes = transaction(&engine);
    let how = Insert { ordered: true, bypass_validation: false, statements: None, context: context() };
    for n in 0..300i32 {
        let doc = doc! { "_id": n };
        writes.insert(&names[n as usize % 7 % 3], &[doc.as_raw()], &how).unwrap();
    }
    writes.commit().unwrap();
    engine.wait_durable(CommitToken::default()).unwrap();
    for (at, name) in names.iter().enumerate() {
        let events = told(&mut *watch(&engine, 0, Scope::Collection(name.clone()), false));
        let expected: Vec<u32> = (0..300).filter(|n| n % 7 % 3 == at as u32).collect();
        assert_eq!(events[1..].iter().map(|event| event.index).collect::<Vec<_>>(), expected);
        let ids: Vec<_> =
            events[1..].iter().map(|event| event.what.key.clone().unwrap().as_raw().to_string()).collect();
        assert_eq!(ids, expected.iter().map(|n| format!("{{ _id: {n} }}")).collect::<Vec<_>>());
    }
    assert!(told(&mut *watch(&engine, 0, Scope::Database("other".into()), false)).is_empty());
}

#[test]
fn a_place_that_is_gone_is_told() {
    let kv_options = Options { history_bytes: 16 << 10, ..Options::tiny() };
    let (engine, _) = Engine::open_on(Arc::new(MemDisk::new()), kv_options, EngineOptions::default()).unwrap();
    insert(&engine, &[doc! { "_id": 0 }]);
    let first = engine.time();
    let mut slow = watch(&engine, 0, Scope::Everything, false);
    let text = "x".repeat(500);
    for n in 1..400 {
        insert(&engine, &[doc! { "_id": n, "text": text.as_str() }]);
    }
    engine.flush().unwrap();
    // Segments go in the background.
    for _ in 0..100 {
        if engine.changes(Watch { scope: Scope::Everything, raw: false, after: first }).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let lost = engine.changes(Watch { scope: Scope::Everything, raw: false, after: first }).err().unwrap();
    assert_eq!(lost.code(), Code::ChangeStreamHistoryLost);
    assert_eq!(lost.labels(), ["NonResumableChangeStreamError"]);
    let lost = slow.next_event(&Interrupt::default(), None).unwrap_err();
    assert_eq!(lost.code(), Code::ChangeStreamHistoryLost);
}
