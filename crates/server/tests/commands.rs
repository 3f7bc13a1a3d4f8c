//! Commands over a real socket: what a client sees.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::{Duration, Instant};

use espalier_value::{ArrayBuf, DocBuf, RawDoc, ValueRef, doc};
use espalier_wire::flags;
use support::client::{batch, cursor_id, int};
use support::{Client, serve};

fn documents(count: i32) -> ArrayBuf {
    let mut docs = ArrayBuf::new();
    for i in 0..count {
        docs.push(&doc! { "_id": i, "text": "some text" });
    }
    docs
}

fn session(byte: u8) -> DocBuf {
    doc! { "id": ValueRef::Binary(4, &[byte; 16]) }
}

#[test]
fn insert_find_and_read_to_the_end() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    let reply = client.ok(doc! { "insert": "c", "documents": &documents(250) });
    assert_eq!(int(&reply, "n"), 250);
    let reply = client.ok(doc! { "find": "c", "filter": RawDoc::EMPTY });
    assert_eq!(batch(&reply).len(), 101);
    let id = cursor_id(&reply);
    assert_ne!(id, 0);
    let reply = client.ok(doc! { "getMore": id, "collection": "c", "batchSize": 100 });
    assert_eq!((batch(&reply).len(), cursor_id(&reply)), (100, id));
    let reply = client.ok(doc! { "getMore": id, "collection": "c" });
    assert_eq!((batch(&reply).len(), cursor_id(&reply)), (49, 0));
    assert_eq!(client.code(doc! { "getMore": id, "collection": "c" }), 43);
}

#[test]
fn a_limit_that_is_reached_closes_the_cursor() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    client.ok(doc! { "insert": "c", "documents": &documents(10) });
    let reply = client.ok(doc! { "find": "c", "limit": 3, "batchSize": 3 });
    assert_eq!((batch(&reply).len(), cursor_id(&reply)), (3, 0));
    let reply = client.ok(doc! { "find": "c", "batchSize": 10 });
    assert_ne!(cursor_id(&reply), 0);
    let reply = client.ok(doc! { "find": "c", "batchSize": 2, "singleBatch": true });
    assert_eq!((batch(&reply).len(), cursor_id(&reply)), (2, 0));
    let reply = client.ok(doc! { "find": "nothing", "batchSize": 0 });
    assert_eq!(cursor_id(&reply), 0);
}

#[test]
fn large_documents_are_split_into_batches() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    let large = "x".repeat(6 * 1024 * 1024);
    for i in 0..5 {
        let mut docs = ArrayBuf::new();
        docs.push(&doc! { "_id": i, "x": &large });
        client.ok(doc! { "insert": "c", "documents": &docs });
    }
    let reply = client.ok(doc! { "find": "c" });
    assert_eq!(batch(&reply).len(), 2);
    let id = cursor_id(&reply);
    let reply = client.ok(doc! { "getMore": id, "collection": "c" });
    assert_eq!((batch(&reply).len(), cursor_id(&reply)), (2, id));
    let reply = client.ok(doc! { "getMore": id, "collection": "c" });
    assert_eq!((batch(&reply).len(), cursor_id(&reply)), (1, 0));
    assert!(matches!(batch(&reply)[0].get("_id"), Some(ValueRef::Int32(4))));
}

#[test]
fn write_errors_carry_their_place() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    let mut docs = ArrayBuf::new();
    docs.push(&doc! { "_id": 1 })
        .push(&doc! { "_id": 1 })
        .push(&doc! { "_id": &documents(1) })
        .push(&doc! { "_id": 2 });
    let reply = client.ok(doc! { "insert": "c", "documents": &docs, "ordered": false });
    let errors = |reply: &DocBuf| {
        let list = reply.as_raw().get("writeErrors").unwrap().as_array().unwrap();
        let part = |doc: RawDoc<'_>, name: &str| match doc.get(name) {
            Some(ValueRef::Int32(n)) => n,
            other => panic!("{other:?}"),
        };
        list.iter().map(|e| (part(e.as_doc().unwrap(), "index"), part(e.as_doc().unwrap(), "code"))).collect::<Vec<_>>()
    };
    assert_eq!((int(&reply, "n"), errors(&reply)), (2, vec![(1, 11000), (2, 53)]));
    let reply = client.ok(doc! { "insert": "d", "documents": &docs });
    assert_eq!((int(&reply, "n"), errors(&reply)), (1, vec![(1, 11000)]));
}

#[test]
fn a_retried_write_is_not_carried_out_twice() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    let mut updates = ArrayBuf::new();
    updates.push(&doc! { "q": &doc! { "_id": 1 }, "u": &doc! { "$inc": &doc! { "n": 1 } }, "upsert": true });
    let update = |number: i64| doc! { "update": "c", "updates": &updates, "lsid": &session(7), "txnNumber": number };
    let first = client.ok(update(1));
    let again = client.ok(update(1));
    let upserted = |reply: &DocBuf| format!("{:?}", reply.as_raw().get("upserted"));
    assert_eq!(upserted(&first), upserted(&again));
    assert!(again.as_raw().get("retriedStmtIds").is_some());
    client.ok(update(2));
    let reply = client.ok(doc! { "find": "c" });
    assert!(matches!(batch(&reply)[0].get("n"), Some(ValueRef::Int32(2))));
    assert_eq!(client.code(update(1)), 225);
    assert_eq!(client.code(doc! { "find": "c", "lsid": &session(7), "txnNumber": 9i64 }), 50768);
}

#[test]
fn cursors_belong_to_their_session_and_collection() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    client.ok(doc! { "insert": "c", "documents": &documents(10) });
    let id = cursor_id(&client.ok(doc! { "find": "c", "batchSize": 2, "lsid": &session(1) }));
    assert_eq!(client.code(doc! { "getMore": id, "collection": "c" }), 50736);
    assert_eq!(client.code(doc! { "getMore": id, "collection": "c", "lsid": &session(2) }), 50738);
    assert_eq!(client.code(doc! { "getMore": id, "collection": "d", "lsid": &session(1) }), 13);
    client.ok(doc! { "getMore": id, "collection": "c", "lsid": &session(1), "batchSize": 2 });
    let mut ended = ArrayBuf::new();
    ended.push(&session(1));
    client.ok(doc! { "endSessions": &ended });
    assert_eq!(client.code(doc! { "getMore": id, "collection": "c", "lsid": &session(1) }), 43);
}

#[test]
fn killed_cursors_are_gone() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    client.ok(doc! { "insert": "c", "documents": &documents(10) });
    let id = cursor_id(&client.ok(doc! { "find": "c", "batchSize": 2 }));
    let mut ids = ArrayBuf::new();
    ids.push(id).push(12345i64);
    let reply = client.ok(doc! { "killCursors": "c", "cursors": &ids });
    let list = |name: &str| reply.as_raw().get(name).unwrap().as_array().unwrap().len();
    assert_eq!((list("cursorsKilled"), list("cursorsNotFound")), (1, 1));
    assert_eq!(client.code(doc! { "getMore": id, "collection": "c" }), 43);
}

#[test]
fn an_awaiting_cursor_wakes_when_a_document_comes() {
    let server = serve();
    let address = server.local_addr();
    let mut client = Client::connect(address);
    client.ok(doc! { "create": "c", "capped": true, "size": 100_000 });
    client.ok(doc! { "insert": "c", "documents": &documents(1) });
    let id = cursor_id(&client.ok(doc! { "find": "c", "tailable": true, "awaitData": true }));
    let begun = Instant::now();
    let reply = client.ok(doc! { "getMore": id, "collection": "c", "maxTimeMS": 150 });
    assert!(batch(&reply).is_empty() && begun.elapsed() >= Duration::from_millis(150));
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        let mut docs = ArrayBuf::new();
        docs.push(&doc! { "_id": 77 });
        Client::connect(address).ok(doc! { "insert": "c", "documents": &docs });
    });
    let begun = Instant::now();
    let reply = client.ok(doc! { "getMore": id, "collection": "c", "maxTimeMS": 20_000 });
    assert_eq!(batch(&reply).len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(10));
    writer.join().unwrap();
}

#[test]
fn hello_streams_until_the_client_leaves() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    let hello = client.run_on("admin", doc! { "hello": 1 });
    let topology = DocBuf::from_raw(hello.as_raw().get_doc("topologyVersion").unwrap());
    let waiting = doc! { "hello": 1, "topologyVersion": &topology, "maxAwaitTimeMS": 150, "$db": "admin" };
    let begun = Instant::now();
    let mut id = client.send(&waiting, flags::EXHAUST_ALLOWED);
    for _ in 0..3 {
        let (header, reply_flags, reply) = client.receive();
        assert_eq!(header.response_to, id);
        assert_eq!(reply_flags & flags::MORE_TO_COME, flags::MORE_TO_COME);
        assert!(matches!(reply.as_raw().get("isWritablePrimary"), Some(ValueRef::Bool(true))));
        id = header.request_id;
    }
    assert!(begun.elapsed() >= Duration::from_millis(450));
    assert!(server.server().threads() <= 2, "waiting holds no thread");
    // Without `exhaustAllowed` there is one answer, and the connection goes on.
    let mut other = Client::connect(server.local_addr());
    let id = other.send(&waiting, 0);
    assert_eq!(other.receive().0.response_to, id);
    other.ok(doc! { "ping": 1 });
}

#[test]
fn commands_that_fail_say_why() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    assert_eq!(client.code(doc! { "nonsense": 1 }), 59);
    assert_eq!(client.code(doc! { "mapReduce": "c" }), 115);
    assert_eq!(client.code(doc! { "find": "c", "x": 1 }), 40415);
    assert_eq!(client.code(doc! { "find": "c", "limit": 1, "limit": 2 }), 40413);
    assert_eq!(client.code(doc! { "insert": "c" }), 40414);
    assert_eq!(client.code(doc! { "insert": "c", "documents": &ArrayBuf::new() }), 16);
    assert_eq!(client.code(doc! { "insert": "c", "documents": &documents(25_001) }), 16);
    assert_eq!(client.code(doc! { "find": "c", "writeConcern": &doc! { "w": 1 } }), 72);
    assert_eq!(client.code(doc! { "getLog": "global" }), 13);
    let start =
        doc! { "drop": "c", "lsid": &session(1), "txnNumber": 1i64, "startTransaction": true, "autocommit": false };
    assert_eq!(client.code(start), 263);
    let reply = client.ok(doc! { "insert": "c", "documents": &documents(1), "writeConcern": &doc! { "w": 3 } });
    let error = reply.as_raw().get_doc("writeConcernError").unwrap();
    assert!(matches!(error.get("code"), Some(ValueRef::Int32(100))));
}

#[test]
fn a_fail_point_fails_what_it_names() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    let mut names = ArrayBuf::new();
    names.push("ping");
    let data = doc! { "failCommands": &names, "errorCode": 91 };
    let mode = doc! { "times": 1 };
    let set = doc! { "configureFailPoint": "failCommand", "mode": &mode, "data": &data };
    let reply = client.run_on("admin", set);
    assert!(matches!(reply.as_raw().get("ok"), Some(ValueRef::Double(1.0))), "{reply:?}");
    assert_eq!(client.code(doc! { "ping": 1 }), 91);
    client.ok(doc! { "ping": 1 });
}

#[test]
fn an_unacknowledged_write_gets_no_answer() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    let concern = doc! { "w": 0 };
    client.quiet(&doc! { "insert": "c", "documents": &documents(3), "writeConcern": &concern, "$db": "test" });
    // The next answer is the one to the next request.
    let reply = client.ok(doc! { "count": "c" });
    assert_eq!(int(&reply, "n"), 3);
}

#[test]
fn shutdown_ends_the_server() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    let mut idle = Client::connect(server.local_addr());
    idle.ok(doc! { "ping": 1 });
    client.run_on("admin", doc! { "shutdown": 1 });
    server.wait();
    server.stop().unwrap();
    assert!(idle.is_closed());
    assert!(client.is_closed());
}

#[test]
fn documents_expire() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    client.run_on("admin", doc! { "setParameter": 1, "ttlMonitorSleepSecs": 1 });
    let mut indexes = ArrayBuf::new();
    indexes.push(&doc! { "key": &doc! { "at": 1 }, "name": "at_1", "expireAfterSeconds": 3600 });
    client.ok(doc! { "createIndexes": "c", "indexes": &indexes });
    // Views are no reason to stop.
    client.ok(doc! { "create": "a_view", "viewOn": "c", "pipeline": &ArrayBuf::new() });
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    let mut docs = ArrayBuf::new();
    docs.push(&doc! { "_id": 1, "at": ValueRef::DateTime(now - 7_200_000) });
    docs.push(&doc! { "_id": 2, "at": ValueRef::DateTime(now) });
    docs.push(&doc! { "_id": 3, "at": 5 });
    docs.push(&doc! { "_id": 4 });
    client.ok(doc! { "insert": "c", "documents": &docs });
    let begun = Instant::now();
    while int(&client.ok(doc! { "count": "c" }), "n") == 4 {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing has expired");
        std::thread::sleep(Duration::from_millis(50));
    }
    let reply = client.ok(doc! { "find": "c" });
    let left: Vec<String> = batch(&reply).iter().map(|doc| doc.get("_id").unwrap().to_string()).collect();
    assert_eq!(left, ["2", "3", "4"]);
}

/// An option that would change what a command does must not be dropped in silence, least of all one that asks for caution.
#[test]
fn an_option_that_is_not_carried_out_is_refused_by_name() {
    let serving = serve();
    let mut client = Client::connect(serving.local_addr());
    client.ok(doc! { "create": "c" });
    let uuid = ValueRef::Binary(4, &[1; 16]);
    let on = |command: &str| {
        let mut body = DocBuf::new();
        body.append(command, "c");
        body
    };
    let with = |mut body: DocBuf, name: &str, value: ValueRef<'_>| {
        body.append(name, value);
        body
    };
    let yes = ValueRef::Bool(true);
    for (command, option, value) in [
        ("drop", "collectionUUID", uuid),
        ("collMod", "dryRun", yes),
        ("listIndexes", "includeBuildUUIDs", yes),
        ("listIndexes", "includeIndexBuildInfo", yes),
        ("insert", "isTimeseriesNamespace", yes),
        ("update", "isTimeseriesNamespace", yes),
        ("delete", "isTimeseriesNamespace", yes),
        ("createIndexes", "isTimeseriesNamespace", yes),
        ("dropIndexes", "isTimeseriesNamespace", yes),
    ] {
        let reply = client.run(with(on(command), option, value));
        assert_eq!(int(&reply, "code"), 115, "{command} with {option}: {reply:?}");
        assert!(reply.as_raw().get_str("errmsg").unwrap().contains(option), "{reply:?}");
    }
    let rename = doc! { "renameCollection": "test.c", "to": "test.d", "collectionUUID": uuid };
    assert_eq!(int(&client.run_on("admin", rename), "code"), 115);
    client.ok(with(on("listIndexes"), "includeBuildUUIDs", ValueRef::Bool(false)));
}
