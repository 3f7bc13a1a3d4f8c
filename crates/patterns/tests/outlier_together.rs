//! Clients that append to one array at the same time are served together: each must find what it would have found alone.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use common::{Db, Random, json, ns, plain, update_spec};
use espalier_query::Interrupt;
use espalier_store::feed::{Event, Scope, Watch};
use espalier_store::{CollectionOptions, Layer, Mode, Remembered, Statement, Store, Updated, Want};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef};

const CLIENTS: usize = 16;
const THRESHOLD: usize = 7;
const BATCH_SIZE: usize = 5;
const BATCH_BYTES: usize = 300;

/// A collection with small segments and a rule about a field beside the array.
fn declared(db: &Db, batch_bytes: usize) {
    let listed = json(&format!(
        "{{patterns: [{{outlier: {{array: \"list.items\", threshold: {THRESHOLD}, batchSize: {BATCH_SIZE}, \
         batchBytes: {batch_bytes}, into: \"pOverflow\", parent: \"p\", count: \"itemCount\"}}}}]}}"
    ));
    let validator = Some(json("{level: {$ne: \"bad\"}, itemCount: {$lt: 100000}}"));
    let options =
        CollectionOptions { layer: Layer::of(listed.as_raw()), listed, validator, ..CollectionOptions::default() };
    let mut tx = db.begin();
    tx.create(&ns("p"), &options).unwrap();
    tx.commit().unwrap();
}

fn begun(db: &Db) {
    declared(db, BATCH_BYTES);
    db.insert("p", &[json("{_id: 1, n: 0, s: \"text\", a: [1, 2, 3], list: {items: []}}")]).unwrap();
}

/// One client's update: filter, update, and what it must come to.
#[derive(Clone, Debug)]
struct Op {
    filter: String,
    update: String,
    /// Elements it adds, `client * 1_000_000 + number`.
    adds: Vec<i32>,
    expect: Expect,
    /// The document is asked for as it is afterwards: this is done alone, between the others.
    image: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Expect {
    Modified,
    NoMatch,
    Fails(Code),
}

fn op(random: &mut Random, client: usize, next: &mut i32) -> Op {
    let kind = random.below(12);
    let count = if kind < 4 { 1 } else { 1 + random.below(4) as usize };
    let adds: Vec<i32> = (0..count as i32).map(|i| client as i32 * 1_000_000 + *next + i).collect();
    *next += count as i32;
    // Some are long, so that bytes fill a batch before elements do.
    let text = |n: &i32| match n % 7 {
        0 => format!("{{k: {n}, t: \"{}\"}}", "x".repeat(150)),
        1 => format!("{{k: {n}}}"),
        _ => n.to_string(),
    };
    let elements =
        format!("$push: {{\"list.items\": {{$each: [{}]}}}}", adds.iter().map(text).collect::<Vec<_>>().join(", "));
    let named = "{_id: 1}".to_string();
    let (filter, update, expect) = match kind {
        0 if text(&adds[0]) == adds[0].to_string() => {
            (named, format!("{{$push: {{\"list.items\": {}}}}}", adds[0]), Expect::Modified)
        }
        0..=4 => (named, format!("{{{elements}}}"), Expect::Modified),
        5 => (named, format!("{{{elements}, $inc: {{n: 1}}, $set: {{last: {}}}}}", adds[0]), Expect::Modified),
        6 => ("{_id: 1, itemCount: {$gte: 0}, s: \"text\"}".into(), format!("{{{elements}}}"), Expect::Modified),
        7 => ("{_id: 1, a: 2}".into(), format!("{{{elements}, $inc: {{\"a.$\": 0, n: 1}}}}"), Expect::Modified),
        8 => (named, format!("{{{elements}, $inc: {{s: 1}}}}"), Expect::Fails(Code::TypeMismatch)),
        9 => {
            let bad = format!("{{{elements}, $set: {{level: \"bad\"}}, $inc: {{n: 1}}}}");
            (named, bad, Expect::Fails(Code::DocumentValidationFailure))
        }
        10 => ("{_id: 1, itemCount: -1}".into(), format!("{{{elements}}}"), Expect::NoMatch),
        _ => (named, format!("{{{elements}, $set: {{level: \"good\"}}}}"), Expect::Modified),
    };
    Op { filter, update, adds, expect, image: kind == 4 }
}

fn carry_out(db: &Db, op: &Op, statement: Statement) -> Result<Updated> {
    let session = statement.session;
    let number = statement.txn_number;
    let done = db.update_with("p", &op.filter, &op.update, |update| {
        update.statement = Some(statement);
        update.want = if op.image { Want::After } else { Want::Nothing };
    });
    let remembered = db.store.remembered(&session, number).unwrap();
    match (&done, op.expect) {
        (Ok(done), Expect::Modified) => {
            assert_eq!((done.matched, done.modified), (1, 1), "{op:?}");
            assert_eq!(done.image.is_some(), op.image);
            if let Some(image) = &done.image {
                assert!(items(image.as_raw()).ends_with(&op.adds), "{op:?}: {image:?}");
            }
            // What a retry is answered with, instead of being done again.
            assert!(matches!(&remembered[..], [Remembered::Updated(0, same)] if same.modified == 1), "{remembered:?}");
        }
        (Ok(done), Expect::NoMatch) => assert_eq!((done.matched, done.modified), (0, 0), "{op:?}"),
        (Err(error), Expect::Fails(code)) => {
            assert_eq!(error.code(), code, "{op:?}: {error:?}");
            assert!(remembered.is_empty(), "{op:?}: {remembered:?}");
        }
        other => panic!("{op:?}: {other:?}"),
    }
    done
}

fn statement(client: usize, number: i64) -> Statement {
    Statement { session: [client as u8 + 1; 16], txn_number: number, id: 0 }
}

/// The number an element stands for.
fn key(value: ValueRef<'_>) -> i32 {
    match value {
        ValueRef::Int32(n) => n,
        ValueRef::Document(doc) => key(doc.get("k").unwrap()),
        other => panic!("{other:?}"),
    }
}

fn items(doc: RawDoc<'_>) -> Vec<i32> {
    match doc.get_doc("list").and_then(|list| list.get("items")) {
        Some(ValueRef::Array(array)) => array.iter().map(key).collect(),
        other => panic!("{other:?}"),
    }
}

fn number(doc: RawDoc<'_>, name: &str) -> i32 {
    match doc.get(name) {
        Some(ValueRef::Int32(n)) => n,
        other => panic!("{name}: {other:?}"),
    }
}

fn events(db: &Db, after: u64) -> Vec<Event> {
    db.store.flush().unwrap();
    let scope = Scope::Collection(ns("p"));
    let mut feed = db.store.changes(Watch { scope, raw: false, after }).unwrap();
    let mut events = Vec::new();
    while let Some(event) = feed.next_event(&Interrupt::default(), Some(Instant::now())).unwrap() {
        events.push(event);
    }
    events
}

fn description(event: &Event) -> RawDoc<'_> {
    event.what.description.as_ref().unwrap().as_raw()
}

/// The elements that an event tells of, each with its place.
fn told(event: &Event) -> Vec<(usize, i32)> {
    let mut all = Vec::new();
    for field in description(event).get_doc("updatedFields").unwrap() {
        match (field.name().strip_prefix("list.items"), field.value()) {
            (Some(""), ValueRef::Array(array)) => all.extend(array.iter().map(key).enumerate()),
            (Some(place), value) => all.push((place[1..].parse().unwrap(), key(value))),
            (None, _) => {}
        }
    }
    all
}

/// How many batches there are after each element.
fn batches_after(doc: RawDoc<'_>) -> Vec<i32> {
    let Some(ValueRef::Array(array)) = doc.get_doc("list").and_then(|list| list.get("items")) else {
        panic!("{doc:?}")
    };
    let (mut batches, mut len, mut bytes) = (0, 0, 0);
    let after = |elem: espalier_value::Elem<'_>| {
        let size = elem.value_bytes().len() + 8;
        let most = if batches == 0 { THRESHOLD } else { BATCH_SIZE };
        (len, bytes) = (len + 1, bytes + size);
        if len > most || bytes > BATCH_BYTES {
            (batches, len, bytes) = (batches + 1, 1, size);
        }
        batches
    };
    array.elems().map(after).collect()
}

/// What is stored, without what differs from one time to the next.
fn stored(db: &Db) -> Vec<DocBuf> {
    let mut all = db.raw("p", "{}");
    all.extend(db.raw("pOverflow", "{}").iter().map(|batch| plain(batch, &["_id", "createdAt"])));
    all
}

/// Lets a client's transaction have the document until the others wait for it, then lets go of it. They are served
/// together: the first has taken those that were there with it, the next has all the others.
fn held<T>(db: &Db, work: impl FnOnce() -> T) -> T {
    let mut tx = db.begin_as(Mode::Transaction, false);
    tx.update(&ns("p"), &update_spec("{_id: 1}", "{$set: {held: 1}}").unwrap()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            tx.abort();
        });
        work()
    })
}

/// Each client's update at the same time; what each was answered.
fn at_once(db: &Db, updates: &[(&str, &str)]) -> Vec<Result<Updated>> {
    let barrier = Barrier::new(updates.len());
    held(db, || {
        std::thread::scope(|scope| {
            let threads: Vec<_> = updates
                .iter()
                .map(|(filter, update)| {
                    let update = update_spec(filter, update).unwrap();
                    scope.spawn(|| {
                        let (mut tx, update) = (db.begin(), update);
                        barrier.wait();
                        let done = tx.update(&ns("p"), &update)?;
                        tx.commit().map(|_| done)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    })
}

fn run(seed: u64, each: usize) {
    let db = Arc::new(Db::new());
    begun(&db);
    let start = db.store.time();
    let stop = AtomicBool::new(false);
    let mut done: Vec<Vec<Op>> = Vec::new();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut looks = 0;
            while !stop.load(Ordering::Relaxed) {
                let at = db.begin();
                let doc = &common::find(&*at, "p", "{_id: 1}", |_| {}).unwrap()[0];
                let batches = number(doc.as_raw(), "overflowCount");
                assert_eq!(items(doc.as_raw()).len() as i32, number(doc.as_raw(), "itemCount"));
                let flag = matches!(doc.as_raw().get("hasOverflow"), Some(ValueRef::Bool(true)));
                assert_eq!(flag, batches > 0);
                db.assert_valid("p");
                looks += 1;
            }
            looks
        });
        done = held(&db, || {
            std::thread::scope(|scope| {
                let clients: Vec<_> = (0..CLIENTS)
                    .map(|client| {
                        let db = &db;
                        scope.spawn(move || {
                            let mut random = Random(seed * 1_000 + client as u64);
                            let mut next = 0;
                            let mut mine = Vec::new();
                            for number in 0..each {
                                let op = op(&mut random, client, &mut next);
                                if carry_out(db, &op, statement(client, number as i64)).is_ok() {
                                    mine.push(op);
                                }
                            }
                            mine
                        })
                    })
                    .collect();
                clients.into_iter().map(|client| client.join().unwrap()).collect()
            })
        });
        stop.store(true, Ordering::Relaxed);
        assert!(watching.join().unwrap() > 0);
    });
    let acknowledged: Vec<&Op> = done.iter().flatten().filter(|op| op.expect == Expect::Modified).collect();
    let doc = &db.find("p", "{_id: 1}")[0];
    let all = items(doc.as_raw());
    for (client, mine) in done.iter().enumerate() {
        let there: Vec<i32> = all.iter().copied().filter(|n| n / 1_000_000 == client as i32).collect();
        let added = mine.iter().filter(|op| op.expect == Expect::Modified).flat_map(|op| op.adds.clone());
        assert_eq!(there, added.collect::<Vec<_>>(), "seed {seed}, client {client}");
    }
    let counted = acknowledged.iter().filter(|op| op.update.contains("n: 1")).count();
    assert_eq!(number(doc.as_raw(), "n") as usize, counted, "seed {seed}");
    db.assert_valid("p");

    // One event for each, in the order of the elements.
    let events = events(&db, start);
    assert_eq!(events.len(), acknowledged.len(), "seed {seed}");
    let places: Vec<(usize, i32)> = events.iter().flat_map(told).collect();
    assert_eq!(places, all.iter().copied().enumerate().collect::<Vec<_>>(), "seed {seed}");
    let (batches, mut count) = (batches_after(doc.as_raw()), 0);
    for event in &events {
        let before = if count == 0 { 0 } else { batches[count - 1] };
        count += told(event).len();
        let fields = description(event).get_doc("updatedFields").unwrap();
        assert_eq!(number(fields, "itemCount") as usize, count, "seed {seed}");
        let changed = (batches[count - 1] != before).then(|| batches[count - 1]);
        assert_eq!(fields.get("overflowCount").map(key), changed, "seed {seed}");
        assert_eq!(fields.get("hasOverflow").is_some(), changed.is_some(), "seed {seed}");
    }
    let shared = events.windows(2).filter(|pair| pair[0].stamp == pair[1].stamp).count();
    assert!(shared > 0, "seed {seed}: nobody was served together with another");

    // The same one by one, in that order, is told and stored in the same way to the byte.
    let by_first: HashMap<i32, &Op> = acknowledged.iter().map(|op| (op.adds[0], *op)).collect();
    let alone = Db::new();
    begun(&alone);
    let start = alone.store.time();
    for event in &events {
        let op = by_first[&told(event)[0].1];
        // In a transaction nothing is done together.
        let mut tx = alone.begin_as(Mode::Transaction, false);
        assert_eq!(tx.update(&ns("p"), &update_spec(&op.filter, &op.update).unwrap()).unwrap().modified, 1);
        tx.commit().unwrap();
    }
    let again = self::events(&alone, start);
    for (event, again) in events.iter().zip(&again) {
        assert_eq!(description(event), description(again), "seed {seed}");
        assert_eq!(event.what.key, again.what.key);
    }
    assert_eq!(stored(&db), stored(&alone), "seed {seed}");
}

#[test]
fn many_clients_at_once_are_as_one_after_the_other() {
    for seed in 0..4 {
        run(seed, 25);
    }
}

#[test]
fn one_that_is_refused_leaves_the_others_alone() {
    let db = Db::new();
    begun(&db);
    let mut updates = vec![("{_id: 1}", "{$push: {\"list.items\": 5}}"); 12];
    updates[3].1 = "{$push: {\"list.items\": 6}, $inc: {s: 1}}";
    updates[7].1 = "{$push: {\"list.items\": 6}, $set: {level: \"bad\"}}";
    updates[9].1 = "{$push: {\"list.items\": 6}, $set: {itemCount: 7}}";
    let done = at_once(&db, &updates);
    let codes: Vec<(usize, Code)> =
        done.iter().enumerate().filter_map(|(at, done)| Some((at, done.as_ref().err()?.code()))).collect();
    let expected = [(3, Code::TypeMismatch), (7, Code::DocumentValidationFailure), (9, Code::ImmutableField)];
    assert_eq!(codes, expected);
    assert_eq!(items(db.find("p", "{_id: 1}")[0].as_raw()), vec![5; 9]);
    db.assert_valid("p");
}

/// Of two values one after the other the store would see the second alone.
#[test]
fn a_value_that_an_index_refuses_is_refused_although_the_next_one_overwrites_it() {
    let db = Db::new();
    begun(&db);
    db.insert("p", &[json("{_id: 2, x: 5, list: {items: []}}")]).unwrap();
    let spec = espalier_store::IndexSpec::parse(json("{key: {x: 1}, name: \"x_1\", unique: true}").as_raw()).unwrap();
    let mut tx = db.begin();
    tx.create_indexes(&ns("p"), &[spec]).unwrap();
    tx.commit().unwrap();
    let updates: Vec<(&str, String)> = (0..12)
        .map(|i| {
            (
                "{_id: 1}",
                format!("{{$push: {{\"list.items\": {i}}}, $set: {{x: {}}}}}", if i % 2 == 0 { 5 } else { 100 + i }),
            )
        })
        .collect();
    let updates: Vec<(&str, &str)> = updates.iter().map(|(filter, update)| (*filter, update.as_str())).collect();
    for (i, done) in at_once(&db, &updates).into_iter().enumerate() {
        assert_eq!(
            done.map_err(|error| error.code()).map(|done| done.modified),
            if i % 2 == 0 { Err(Code::DuplicateKey) } else { Ok(1) }
        );
    }
    let mut there = items(db.find("p", "{_id: 1}")[0].as_raw());
    there.sort_unstable();
    assert_eq!(there, [1, 3, 5, 7, 9, 11]);
    db.assert_valid("p");
}

#[test]
fn one_that_makes_the_document_too_large_is_refused_alone() {
    let db = Db::new();
    // The elements in the document count, too.
    declared(&db, 1 << 20);
    let long = "e".repeat(500 << 10);
    let mut doc = json(&format!("{{_id: 1, list: {{items: [{{k: 7, t: \"{long}\"}}]}}}}"));
    doc.append("pad", "x".repeat((16 << 20) - (500 << 10) - 2_000).as_str());
    db.insert("p", &[doc]).unwrap();
    let large = format!("{{$push: {{\"list.items\": 1}}, $set: {{more: \"{}\"}}}}", "y".repeat(4_000));
    // Whoever comes next makes it small again.
    let mut updates = vec![("{_id: 1}", "{$push: {\"list.items\": 0}, $set: {more: \"\"}}"); 12];
    (updates[2].1, updates[5].1, updates[7].1) = (&large, &large, &large);
    let done = at_once(&db, &updates);
    let failed: Vec<usize> = (0..12).filter(|at| done[*at].is_err()).collect();
    assert_eq!(failed, [2, 5, 7], "{:?}", done.iter().map(|d| d.as_ref().err().map(Error::code)).collect::<Vec<_>>());
    assert_eq!(items(db.find("p", "{_id: 1}")[0].as_raw()), [7, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    db.assert_valid("p");
}

/// What another pattern reads of the document is not the array alone: the counts change with it.
#[test]
fn a_copy_of_the_count_follows() {
    let db = Db::new();
    begun(&db);
    let copy = "{patterns: [{reference: {from: \"p\", on: {pid: \"_id\"}, into: \"of\", fields: [\"itemCount\"]}}]}";
    db.create("copies", copy).unwrap();
    db.insert("copies", &[json("{_id: 1, pid: 1}")]).unwrap();
    for done in at_once(&db, &[("{_id: 1}", "{$push: {\"list.items\": 1}}"); 10]) {
        assert_eq!(done.unwrap().modified, 1);
    }
    let copies = db.find("copies", "{}");
    assert_eq!(number(copies[0].as_raw().get_doc("of").unwrap(), "itemCount"), 10);
}

#[test]
fn a_place_in_another_array_is_found() {
    let db = Db::new();
    begun(&db);
    db.update("p", "{_id: 1, a: 2}", "{$set: {\"a.$\": 9}}").unwrap();
    db.update("p", "{_id: 1, a: 3}", "{$set: {\"a.$\": 8}, $push: {\"list.items\": 1}}").unwrap();
    let doc = &db.find("p", "{_id: 1}")[0];
    let a: Vec<i32> = doc.as_raw().get("a").and_then(ValueRef::as_array).unwrap().iter().map(key).collect();
    assert_eq!((a, items(doc.as_raw())), (vec![1, 9, 8], vec![1]));
}
