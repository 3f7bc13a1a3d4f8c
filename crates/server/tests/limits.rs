//! Every limit of the table, met by a client: what it gets, and that nothing changed.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use espalier_engine::{Engine, EngineOptions};
use espalier_server::limits::{self, Limits};
use espalier_server::{Options, Serving, start};
use espalier_value::{ArrayBuf, DocBuf, RawDoc, ValueRef, doc};
use support::client::{batch, cursor_id, int};
use support::{Client, Session, options};

/// A server whose limits are as small as the test likes.
fn serve(change: impl FnOnce(&mut Limits)) -> Serving {
    let mut limits = Limits::default();
    change(&mut limits);
    let engine = EngineOptions {
        collections_max: limits.collections_max as usize,
        indexes_max: limits.indexes_max as usize,
        index_fields_max: limits.index_fields_max as usize,
        index_key_bytes_max: limits.index_key_bytes_max as usize,
        database_name_bytes_max: limits.database_name_bytes_max as usize,
        namespace_bytes_max: limits.namespace_bytes_max as usize,
        sort_bytes_max: limits.sort_bytes_max as usize,
        document_bytes_max: limits.document_bytes_max as usize,
        document_depth_max: limits.document_depth_max as usize,
        transaction_bytes_max: limits.transaction_bytes_max as usize,
        history_bytes: limits.history_bytes_max,
        history_age: Duration::from_secs(limits.history_seconds_max),
        snapshot_age: Duration::from_secs(limits.snapshot_seconds_max),
        snapshot_bytes: limits.snapshot_bytes_max,
        ..EngineOptions::default()
    };
    let (engine, _) = Engine::open(engine).unwrap();
    start(Options { limits, ..options() }, Arc::new(engine)).unwrap()
}

fn insert(collection: &str, docs: &[DocBuf]) -> DocBuf {
    doc! { "insert": collection, "documents": &docs.iter().map(DocBuf::as_raw).map(ValueRef::Document).collect::<ArrayBuf>() }
}

fn update(collection: &str, q: DocBuf, u: DocBuf) -> DocBuf {
    let entry = doc! { "q": &q, "u": &u };
    doc! { "update": collection, "updates": &[ValueRef::Document(entry.as_raw())].into_iter().collect::<ArrayBuf>() }
}

fn index(name: &str, key: DocBuf) -> DocBuf {
    let spec = doc! { "name": name, "key": &key };
    doc! { "createIndexes": "c", "indexes": &[ValueRef::Document(spec.as_raw())].into_iter().collect::<ArrayBuf>() }
}

/// The code of the first write error.
fn write_error(reply: &DocBuf) -> i32 {
    let errors = reply.as_raw().get("writeErrors").and_then(ValueRef::as_array).unwrap_or_else(|| panic!("{reply:?}"));
    match errors.get(0).and_then(ValueRef::as_doc).and_then(|error| error.get("code")) {
        Some(ValueRef::Int32(code)) => code,
        other => panic!("{other:?}"),
    }
}

fn find_one(client: &mut Client, collection: &str) -> DocBuf {
    let reply = client.ok(doc! { "find": collection });
    DocBuf::from_raw(batch(&reply)[0])
}

fn nested(levels: usize) -> DocBuf {
    (1..levels).fold(DocBuf::new(), |inner, _| doc! { "a": &inner })
}

#[test]
fn a_document_cannot_be_too_large_nor_grow_too_large() {
    let serving = serve(|limits| limits.document_bytes_max = 1_000);
    let mut client = Client::connect(serving.local_addr());
    let text = |n: usize| "x".repeat(n);
    let reply = client.run(insert("c", &[doc! { "_id": 1, "s": text(1_000).as_str() }]));
    assert_eq!(write_error(&reply), 2, "{reply:?}");
    client.ok(insert("c", &[doc! { "_id": 1, "s": text(600).as_str() }]));
    let before = find_one(&mut client, "c");
    let grown = text(600);
    for grow in [
        doc! { "$set": &doc! { "t": grown.as_str() } },
        doc! { "s": text(1_000).as_str() },
        doc! { "$push": &doc! { "list": grown.as_str() } },
    ] {
        let reply = client.run(update("c", doc! { "_id": 1 }, grow));
        assert_eq!(write_error(&reply), 17419, "{reply:?}");
        assert_eq!(find_one(&mut client, "c"), before);
    }
    let code = client.code(doc! {
        "findAndModify": "c", "query": &doc! { "_id": 1 }, "update": &doc! { "$set": &doc! { "t": grown.as_str() } }
    });
    assert_eq!(code, 17419);
    assert_eq!(find_one(&mut client, "c"), before);
    assert_eq!(int(&client.ok(doc! { "hello": 1 }), "maxBsonObjectSize"), 1_000);
}

#[test]
fn a_document_cannot_be_nested_too_deep_nor_become_so() {
    let serving = serve(|limits| limits.document_depth_max = 20);
    let mut client = Client::connect(serving.local_addr());
    let reply = client.run(insert("c", &[nested(21)]));
    assert_eq!(write_error(&reply), 15, "{reply:?}");
    let mut deep = doc! { "_id": 1 };
    deep.append("a", &nested(19));
    client.ok(insert("c", &[deep]));
    let before = find_one(&mut client, "c");
    let path = ["a"; 20].join(".");
    let mut set = DocBuf::new();
    set.append(&path, &doc! { "b": 1 });
    let reply = client.run(update("c", doc! { "_id": 1 }, doc! { "$set": &set }));
    assert_eq!(write_error(&reply), 15, "{reply:?}");
    assert_eq!(find_one(&mut client, "c"), before);
}

#[test]
fn collections_indexes_and_names_are_limited() {
    let serving = serve(|limits| {
        limits.collections_max = 3;
        limits.indexes_max = 3;
        limits.index_fields_max = 2;
        limits.index_key_bytes_max = 100;
        limits.database_name_bytes_max = 8;
        limits.namespace_bytes_max = 16;
    });
    let mut client = Client::connect(serving.local_addr());
    for name in ["a", "b", "c"] {
        client.ok(doc! { "create": name });
    }
    assert_eq!(client.code(doc! { "create": "d" }), 96);
    // One that comes with its first document is no other.
    let reply = client.run(insert("d", &[doc! { "_id": 1 }]));
    assert!(!matches!(reply.as_raw().get("n"), Some(ValueRef::Int32(1))), "{reply:?}");
    client.ok(doc! { "drop": "a" });
    assert_eq!(client.code(doc! { "create": "longer-than-that" }), 73);
    let reply = client.run_on("long-name", doc! { "create": "x" });
    assert_eq!(int(&reply, "code"), 73);
    let rename = doc! { "renameCollection": "test.b", "to": "test.longer-than-that" };
    assert_eq!(int(&client.run_on("admin", rename), "code"), 73);
    client.ok(doc! { "create": "d" });

    client.ok(index("x", doc! { "x": 1 }));
    assert_eq!(client.code(index("wide", doc! { "p": 1, "q": 1, "r": 1 })), 13103);
    client.ok(index("y", doc! { "y": 1 }));
    assert_eq!(client.code(index("z", doc! { "z": 1 })), 67);
    let long = "k".repeat(200);
    let reply = client.run(insert("c", &[doc! { "_id": 1, "x": long.as_str() }]));
    assert_eq!(write_error(&reply), 17280, "{reply:?}");
    client.ok(insert("c", &[doc! { "_id": 1, "z": long.as_str() }]));
    let reply = client.run(update("c", doc! { "_id": 1 }, doc! { "$set": &doc! { "x": long.as_str() } }));
    assert_eq!(write_error(&reply), 17280, "{reply:?}");
    client.ok(doc! { "dropIndexes": "c", "index": "y" });
    assert_eq!(client.code(index("z", doc! { "z": 1 })), 17280);
}

#[test]
fn batches_and_pipelines_are_limited() {
    let serving = serve(|limits| {
        limits.write_batch_max = 3;
        limits.pipeline_stages_max = 2;
    });
    let mut client = Client::connect(serving.local_addr());
    assert_eq!(int(&client.ok(doc! { "hello": 1 }), "maxWriteBatchSize"), 3);
    let docs: Vec<DocBuf> = (0..4).map(|i| doc! { "_id": i }).collect();
    assert_eq!(client.code(insert("c", &docs)), 16);
    assert_eq!(int(&client.ok(doc! { "count": "c" }), "n"), 0);
    client.ok(insert("c", &docs[..3]));
    let matches = doc! { "$match": RawDoc::EMPTY };
    let stages = |n: usize| std::iter::repeat_n(ValueRef::Document(matches.as_raw()), n).collect::<ArrayBuf>();
    client.ok(doc! { "aggregate": "c", "pipeline": &stages(2), "cursor": RawDoc::EMPTY });
    assert_eq!(client.code(doc! { "aggregate": "c", "pipeline": &stages(3), "cursor": RawDoc::EMPTY }), 7_749_501);
    // Inside a stage, too.
    let facet = doc! { "$facet": &doc! { "f": &stages(3) } };
    let pipeline: ArrayBuf = [ValueRef::Document(facet.as_raw())].into_iter().collect();
    assert_eq!(client.code(doc! { "aggregate": "c", "pipeline": &pipeline, "cursor": RawDoc::EMPTY }), 7_749_501);
}

#[test]
fn cursors_are_limited_in_number_and_age() {
    let serving = serve(|limits| {
        limits.cursors_max = 2;
        limits.cursor_timeout_seconds = 1;
    });
    let mut client = Client::connect(serving.local_addr());
    client.ok(insert("c", &(0..10).map(|i| doc! { "_id": i }).collect::<Vec<_>>()));
    let find = || doc! { "find": "c", "batchSize": 2 };
    let first = cursor_id(&client.ok(find()));
    client.ok(find());
    assert_eq!(client.code(find()), 365);
    client.ok(doc! { "getMore": first, "collection": "c", "batchSize": 2 });
    thread::sleep(Duration::from_millis(2_200));
    assert_eq!(client.code(doc! { "getMore": first, "collection": "c" }), 43);
    client.ok(find());
}

#[test]
fn connections_and_threads_are_limited() {
    let serving = serve(|limits| {
        limits.connections_max = 3;
        limits.threads_max = 2;
    });
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(serving.local_addr())).collect();
    for client in &mut clients {
        client.ok(doc! { "ping": 1 });
    }
    assert!(Client::connect(serving.local_addr()).is_closed());
    let status = clients[0].ok(doc! { "serverStatus": 1 });
    let connections = status.as_raw().get_doc("connections").unwrap();
    assert!(matches!(connections.get("rejected"), Some(ValueRef::Int32(1))), "{status:?}");
    assert!(serving.server().threads() <= 2);
    drop(clients.pop());
    // Its place is free as soon as the server has noticed.
    let again = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(20));
        let mut client = Client::connect(serving.local_addr());
        client.try_send(&doc! { "ping": 1, "$db": "test" }).is_ok() && client.try_receive().is_ok()
    });
    assert!(again);
}

#[test]
fn sessions_and_transactions_are_limited() {
    let serving = serve(|limits| {
        limits.sessions_max = 16;
        limits.session_timeout_minutes = 7;
        limits.transaction_seconds_max = 1;
        limits.transaction_bytes_max = 10_000;
    });
    let mut client = Client::connect(serving.local_addr());
    assert_eq!(int(&client.ok(doc! { "hello": 1 }), "logicalSessionTimeoutMinutes"), 7);
    client.ok(doc! { "create": "c" });
    let mut session = Session::new();
    session.start();
    session.run(&mut client, "test", insert("c", &[doc! { "_id": 1 }])).unwrap();
    thread::sleep(Duration::from_millis(2_000));
    let failed = session.commit(&mut client).unwrap_err();
    assert_eq!(failed.code, 251, "{failed:?}");
    session.start();
    let large = "x".repeat(20_000);
    let failed = session.run(&mut client, "test", insert("c", &[doc! { "_id": 2, "s": large.as_str() }])).unwrap_err();
    assert_eq!(failed.code, 257, "{failed:?}");
    assert_eq!(int(&client.ok(doc! { "count": "c" }), "n"), 0);
    let mut refused = false;
    for _ in 0..64 {
        let lsid = Session::new().lsid();
        let reply = client.run(doc! { "ping": 1, "lsid": &lsid });
        refused |= matches!(reply.as_raw().get("code"), Some(ValueRef::Int32(261)));
    }
    assert!(refused);
}

#[test]
fn reads_at_a_time_are_limited_in_size_and_age() {
    let small: fn(&mut Limits) = |limits| limits.snapshot_bytes_max = 1;
    let short: fn(&mut Limits) = |limits| limits.snapshot_seconds_max = 1;
    for (change, gone) in [(small, true), (short, true), (|_: &mut Limits| {}, false)] {
        let serving = serve(change);
        let mut client = Client::connect(serving.local_addr());
        let reply = client.ok(insert("c", &[doc! { "_id": 1 }]));
        let time = reply.as_raw().get("operationTime").unwrap();
        let again = doc! { "find": "c", "readConcern": &doc! { "level": "snapshot", "atClusterTime": time } };
        client.ok(again.clone());
        client.ok(insert("c", &[doc! { "_id": 2 }]));
        thread::sleep(Duration::from_millis(2_500));
        // Versions in memory take no room of their own; those on disk do.
        client.run_on("admin", doc! { "fsync": 1 });
        if gone {
            assert_eq!(client.code(again), 239);
        } else {
            client.ok(again);
        }
    }
}

#[test]
fn history_is_limited_in_size_and_age() {
    let small: fn(&mut Limits) = |limits| limits.history_bytes_max = 1;
    let short: fn(&mut Limits) = |limits| limits.history_seconds_max = 1;
    for (change, gone) in [(small, true), (short, true), (|_: &mut Limits| {}, false)] {
        let serving = serve(change);
        let mut client = Client::connect(serving.local_addr());
        let reply = client.ok(insert("c", &[doc! { "_id": 0 }]));
        let time = reply.as_raw().get("operationTime").unwrap();
        let stage = doc! { "$changeStream": &doc! { "startAtOperationTime": time } };
        let pipeline: ArrayBuf = [ValueRef::Document(stage.as_raw())].into_iter().collect();
        let watch = doc! { "aggregate": "c", "pipeline": &pipeline, "cursor": RawDoc::EMPTY };
        client.ok(watch.clone());
        let lost = (1..60).any(|i| {
            client.ok(insert("c", &[doc! { "_id": i }]));
            // What is kept goes by whole segments of the log, which end when the memory is written out.
            client.run_on("admin", doc! { "fsync": 1 });
            thread::sleep(Duration::from_millis(if gone { 100 } else { 10 }));
            matches!(client.run(watch.clone()).as_raw().get("code"), Some(ValueRef::Int32(286)))
        });
        assert_eq!(lost, gone);
    }
}

#[test]
fn a_sort_that_may_not_use_the_disk_is_limited() {
    let serving = serve(|limits| limits.sort_bytes_max = 10_000);
    let mut client = Client::connect(serving.local_addr());
    let text = "x".repeat(500);
    client.ok(insert("c", &(0..100).map(|i| doc! { "_id": i, "s": text.as_str() }).collect::<Vec<_>>()));
    assert_eq!(client.code(doc! { "find": "c", "sort": &doc! { "s": -1 }, "allowDiskUse": false }), 292);
    let push = doc! { "$group": &doc! { "_id": "$_id", "s": &doc! { "$push": "$s" } } };
    let pipeline: ArrayBuf = [ValueRef::Document(push.as_raw())].into_iter().collect();
    let group = doc! { "aggregate": "c", "pipeline": &pipeline, "cursor": RawDoc::EMPTY, "allowDiskUse": false };
    assert!(matches!(client.code(group), 292 | 5_643_012 | 146));
}

#[test]
fn memory_for_requests_and_replies_is_bounded() {
    let serving = serve(|limits| {
        limits.in_flight_bytes_max = 200_000;
        limits.in_flight_reply_bytes_max = 200_000;
    });
    let mut client = Client::connect(serving.local_addr());
    let text = "x".repeat(100_000);
    client.ok(insert("c", &(0..8).map(|i| doc! { "_id": i, "s": text.as_str() }).collect::<Vec<_>>()));
    let in_flight = || {
        let server = serving.server();
        server.in_flight_bytes()
    };
    let is_free = || {
        (0..250).any(|_| {
            thread::sleep(Duration::from_millis(10));
            in_flight() == (0, 0)
        })
    };
    assert!(is_free(), "{:?}", in_flight());
    // A large request has its share from its first bytes on; another one that does not fit waits for it.
    let mut held = Client::connect(serving.local_addr());
    let mut large = doc! { "ping": 1, "$db": "test", "comment": "x".repeat(150_000).as_str() };
    let mut bytes = Vec::new();
    large.append("tail", 1);
    let mut message = espalier_wire::begin_op_msg(&mut bytes, 1, 0, 0);
    message.bytes().extend_from_slice(large.as_bytes());
    message.finish(espalier_wire::MAX_MESSAGE_BYTES).unwrap();
    held.stream.write_all(&bytes[..bytes.len() - 10]).unwrap();
    let taken = (0..250).any(|_| {
        thread::sleep(Duration::from_millis(20));
        in_flight().0 >= 150_000
    });
    assert!(taken);
    let mut other = Client::connect(serving.local_addr());
    other.stream.write_all(&bytes).unwrap();
    other.stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(other.stream.peek(&mut [0]).is_err(), "the second request was not to be executed yet");
    held.stream.write_all(&bytes[bytes.len() - 10..]).unwrap();
    held.receive();
    other.stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    other.receive();
    // A large reply that is not read keeps its share; another one waits for it, and a small one does not.
    let mut slow = Client::connect(serving.local_addr());
    for _ in 0..40 {
        slow.send(&doc! { "find": "c", "$db": "test" }, 0);
    }
    let stuck = (0..250).any(|_| {
        thread::sleep(Duration::from_millis(20));
        in_flight().1 > 0
    });
    assert!(stuck);
    client.ok(doc! { "ping": 1 });
    for _ in 0..40 {
        assert_eq!(batch(&slow.receive().2).len(), 8);
    }
    assert_eq!(batch(&client.ok(doc! { "find": "c" })).len(), 8);
    assert!(is_free(), "{:?}", in_flight());
}

#[test]
fn what_is_slow_is_a_limit_too() {
    let serving = serve(|limits| limits.slow_ms = 1);
    let mut client = Client::connect(serving.local_addr());
    assert_eq!(int(&client.ok(doc! { "profile": -1 }), "slowms"), 1);
}

/// A limit that is new must get its test here: this list is the proof that somebody thought of it.
#[test]
fn every_limit_is_tested_above() {
    let source = include_str!("limits.rs");
    for limit in limits::ALL {
        let mut limits = Limits::default();
        limit.set(&mut limits, 7);
        let fields = format!("{limits:?}");
        let name = fields.split([' ', ',', '{']).collect::<Vec<_>>();
        let at = name.iter().position(|word| *word == "7").unwrap();
        let field = name[at - 1].trim_end_matches(':');
        assert!(source.contains(&format!("limits.{field} = ")), "no test sets the limit {field}");
    }
}
