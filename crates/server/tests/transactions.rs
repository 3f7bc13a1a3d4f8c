//! Transactions over a socket: who waits for whom, what ends one, and what outlives a restart.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use espalier_engine::{Engine, EngineOptions};
use espalier_server::{Serving, start};
use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};
use support::client::{batch, cursor_id, int};
use support::{Client, Session, options, serve, serve_with};

fn inc(id: i32) -> DocBuf {
    let mut updates = ArrayBuf::new();
    updates.push(&doc! { "q": &doc! { "_id": id }, "u": &doc! { "$inc": &doc! { "n": 1 } } });
    doc! { "update": "c", "updates": &updates }
}

fn insert(ids: std::ops::Range<i32>) -> DocBuf {
    let mut docs = ArrayBuf::new();
    for id in ids {
        docs.push(&doc! { "_id": id, "n": 0 });
    }
    doc! { "insert": "c", "documents": &docs }
}

fn n(client: &mut Client, id: i32) -> i32 {
    let reply = client.ok(doc! { "find": "c", "filter": &doc! { "_id": id } });
    int(&DocBuf::from_raw(batch(&reply)[0]), "n")
}

#[test]
fn a_plain_write_waits_for_a_transaction_and_holds_up_nobody() {
    let server = serve();
    let (mut one, mut session) = (Client::connect(server.local_addr()), Session::new());
    one.ok(insert(0..2));
    session.start();
    session.run(&mut one, "test", inc(0)).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Client::connect(server.local_addr()).ok(inc(0)));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished());
        let mut other = Client::connect(server.local_addr());
        let begun = Instant::now();
        other.ok(inc(1));
        other.ok(insert(2..10));
        assert!(begun.elapsed() < Duration::from_secs(1));
        let mut limited = inc(0);
        limited.append("maxTimeMS", 30);
        assert_eq!(other.code(limited), 50);
        session.commit(&mut one).unwrap();
        waiting.join().unwrap();
    });
    assert_eq!((n(&mut one, 0), n(&mut one, 1)), (2, 1));
}

#[test]
fn a_plain_insert_waits_for_the_same_key_and_then_finds_it_taken_or_free() {
    let server = serve();
    for commit in [true, false] {
        let (mut one, mut session) = (Client::connect(server.local_addr()), Session::new());
        one.ok(doc! { "delete": "c", "deletes": &{
            let mut all = ArrayBuf::new();
            all.push(&doc! { "q": &doc! {}, "limit": 0 });
            all
        } });
        one.ok(insert(0..1));
        session.start();
        session.run(&mut one, "test", insert(7..8)).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Client::connect(server.local_addr()).ok(insert(7..8)));
            std::thread::sleep(Duration::from_millis(50));
            assert!(!waiting.is_finished());
            if commit {
                session.commit(&mut one).unwrap()
            } else {
                session.abort(&mut one).unwrap()
            }
            assert_eq!(int(&waiting.join().unwrap(), "n"), i32::from(!commit));
        });
    }
}

#[test]
fn a_transaction_ends_with_its_time_its_session_and_its_cursors() {
    let mut options = options();
    options.limits.transaction_seconds_max = 1;
    let server = serve_with(options);
    let (mut client, mut session) = (Client::connect(server.local_addr()), Session::new());
    client.ok(insert(0..10));
    session.start();
    session.run(&mut client, "test", inc(0)).unwrap();
    let reply = session.run(&mut client, "test", doc! { "find": "c", "batchSize": 2 }).unwrap();
    let id = cursor_id(&reply);
    // Waits until the transaction is gone, and no longer.
    let begun = Instant::now();
    Client::connect(server.local_addr()).ok(inc(0));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let failed = session.commit(&mut client).unwrap_err();
    assert_eq!((failed.code, failed.is_transient()), (251, true));
    assert_eq!(n(&mut client, 0), 1);
    let more = doc! { "getMore": id, "collection": "c", "lsid": &session.lsid() };
    assert_eq!(client.code(more), 43);
    session.start();
    session.run(&mut client, "test", inc(1)).unwrap();
    let mut ids = ArrayBuf::new();
    ids.push(&session.lsid());
    client.ok(doc! { "endSessions": &ids });
    assert_eq!(session.commit(&mut client).unwrap_err().code, 251);
    client.ok(inc(1));
    assert_eq!(n(&mut client, 1), 1);
}

#[test]
fn a_long_statement_is_ended_with_its_transaction() {
    let mut options = options();
    options.limits.transaction_seconds_max = 1;
    let server = serve_with(options);
    let (mut client, mut session) = (Client::connect(server.local_addr()), Session::new());
    client.ok(insert(0..2000));
    session.start();
    let (mut pipeline, lookup) = (ArrayBuf::new(), doc! { "from": "c", "pipeline": &ArrayBuf::new(), "as": "all" });
    pipeline.push(&doc! { "$lookup": &lookup }).push(&doc! { "$group": &doc! { "_id": "$all.n" } });
    let command = doc! { "aggregate": "c", "pipeline": &pipeline, "cursor": &doc! {} };
    let failed = session.run(&mut client, "test", command).unwrap_err();
    assert!(failed.is_transient(), "{failed:?}");
    assert_eq!(session.commit(&mut client).unwrap_err().code, 251);
}

#[test]
fn a_transaction_cannot_outgrow_its_memory() {
    let options_ = EngineOptions { transaction_bytes_max: 100_000, ..EngineOptions::default() };
    let (engine, _) = Engine::open(options_).unwrap();
    let server = start(options(), Arc::new(engine)).unwrap();
    let (mut client, mut session) = (Client::connect(server.local_addr()), Session::new());
    session.start();
    let mut docs = ArrayBuf::new();
    docs.push(&doc! { "_id": 1, "text": "x".repeat(60_000).as_str() });
    session.run(&mut client, "test", doc! { "insert": "c", "documents": &docs }).unwrap();
    let mut docs = ArrayBuf::new();
    docs.push(&doc! { "_id": 2, "text": "x".repeat(60_000).as_str() });
    let failed = session.run(&mut client, "test", doc! { "insert": "c", "documents": &docs }).unwrap_err();
    assert_eq!((failed.code, failed.is_transient()), (257, false));
    assert_eq!(session.commit(&mut client).unwrap_err().code, 251);
    assert_eq!(int(&client.ok(doc! { "count": "c" }), "n"), 0);
}

fn serve_folder(folder: &Path) -> (Engine, Serving) {
    let options_ = EngineOptions { folder: Some(folder.to_owned()), ..EngineOptions::default() };
    let (engine, _) = Engine::open(options_).unwrap();
    let serving = start(options(), Arc::new(engine.clone())).unwrap();
    (engine, serving)
}

#[test]
fn what_was_answered_is_answered_again_after_a_restart() {
    let folder = std::env::temp_dir().join(format!("espalier-retry-{}", std::process::id()));
    let (mut write, mut modify, mut transaction, mut open) =
        (Session::new(), Session::new(), Session::new(), Session::new());
    for session in [&mut write, &mut modify] {
        session.number = 3;
    }
    let modification = doc! {
        "findAndModify": "c", "query": &doc! { "_id": 1 }, "update": &doc! { "$inc": &doc! { "n": 1 } }, "new": true,
    };
    let mut upserts = ArrayBuf::new();
    for id in [0, 50, 51] {
        let one = doc! { "q": &doc! { "_id": id }, "u": &doc! { "$inc": &doc! { "n": 1 } }, "upsert": true };
        upserts.push(&one);
    }
    let upsert = doc! { "update": "c", "updates": &upserts };
    let (first, image) = {
        let (engine, server) = serve_folder(&folder);
        let mut client = Client::connect(server.local_addr());
        client.ok(insert(0..3));
        let first = client.ok(write.retryable(upsert.clone()));
        let image = client.ok(modify.retryable(modification.clone()));
        transaction.start();
        transaction.run(&mut client, "test", inc(2)).unwrap();
        transaction.commit(&mut client).unwrap();
        open.start();
        open.run(&mut client, "test", insert(90..91)).unwrap();
        server.stop().unwrap();
        engine.close().unwrap();
        (first, image)
    };
    let (engine, server) = serve_folder(&folder);
    let mut client = Client::connect(server.local_addr());
    let same = |a: &DocBuf, b: &DocBuf, name: &str| {
        assert_eq!(format!("{:?}", a.as_raw().get(name)), format!("{:?}", b.as_raw().get(name)), "{name}");
    };
    let again = client.ok(write.retryable(upsert));
    ["n", "nModified", "upserted"].iter().for_each(|name| same(&first, &again, name));
    assert!(matches!(again.as_raw().get("retriedStmtIds"), Some(ValueRef::Array(ids)) if ids.len() == 3));
    let again = client.ok(modify.retryable(modification));
    ["lastErrorObject", "value"].iter().for_each(|name| same(&image, &again, name));
    transaction.commit(&mut client).unwrap();
    assert_eq!(open.commit(&mut client).unwrap_err().code, 251);
    assert_eq!((n(&mut client, 0), n(&mut client, 1), n(&mut client, 2), n(&mut client, 50)), (1, 1, 1, 1));
    assert_eq!(int(&client.ok(doc! { "count": "c" }), "n"), 5);
    // The next number takes the place of the last, and an ended session leaves nothing behind.
    write.number = 2;
    assert_eq!(client.code(write.retryable(inc(0))), 225);
    write.number = 4;
    client.ok(write.retryable(inc(0)));
    assert_eq!(n(&mut client, 0), 2);
    let mut ids = ArrayBuf::new();
    [&write, &modify, &transaction, &open].iter().for_each(|session| {
        ids.push(&session.lsid());
    });
    client.ok(doc! { "endSessions": &ids });
    assert_eq!(espalier_store::Store::remembered_sessions(&engine).unwrap(), []);
    server.stop().unwrap();
    engine.close().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}
