//! Sessions of users: one user's session is not another's, whatever id they choose, now and after a restart.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use espalier_engine::{Engine, EngineOptions};
use espalier_server::{Options, Serving, start};
use espalier_value::{ArrayBuf, DocBuf, RawDoc, ValueRef, doc};
use ring::digest;
use support::client::int;
use support::scram::{is_ok, login, roles};
use support::{Client, options};

const ID: [u8; 16] = [5; 16];

fn engine() -> Engine {
    Engine::open(EngineOptions::default()).unwrap().0
}

fn serve(engine: &Engine) -> Serving {
    start(Options { auth: true, ..options() }, Arc::new(engine.clone())).unwrap()
}

/// A server with the users `root`, `one` and `two`, the latter two in `test`.
fn serve_users(engine: &Engine) -> Serving {
    let server = serve(engine);
    let mut root = Client::connect(server.local_addr());
    assert!(is_ok(&root.run_on("admin", doc! { "createUser": "root", "pwd": "pw", "roles": &roles(&["root"]) })));
    assert!(is_ok(&login(&mut root, "admin", "root", "SCRAM-SHA-256", "pw")));
    for user in ["one", "two"] {
        root.ok(doc! { "createUser": user, "pwd": "pw", "roles": &roles(&["readWrite"]) });
    }
    server
}

fn logged_in(server: &Serving, db: &str, user: &str) -> Client {
    let mut client = Client::connect(server.local_addr());
    assert!(is_ok(&login(&mut client, db, user, "SCRAM-SHA-256", "pw")));
    client
}

fn lsid() -> DocBuf {
    doc! { "id": ValueRef::Binary(4, &ID) }
}

fn uid(name: &str) -> Vec<u8> {
    digest::digest(&digest::SHA256, name.as_bytes()).as_ref().to_vec()
}

fn insert(id: i32) -> DocBuf {
    let docs: ArrayBuf = [doc! { "_id": id }].iter().map(ValueRef::from).collect();
    doc! { "insert": "c", "documents": &docs, "lsid": &lsid(), "txnNumber": 1i64 }
}

fn batch(reply: &DocBuf) -> Vec<DocBuf> {
    let cursor = reply.as_raw().get_doc("cursor").unwrap_or_else(|| panic!("{reply:?}"));
    let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).unwrap();
    batch.iter().map(|value| DocBuf::from_raw(value.as_doc().unwrap())).collect()
}

fn aggregate(stage: DocBuf) -> DocBuf {
    let stages: ArrayBuf = [stage].iter().map(ValueRef::from).collect();
    doc! { "aggregate": 1, "pipeline": &stages, "cursor": RawDoc::EMPTY }
}

fn uid_in(lsid: RawDoc<'_>) -> Vec<u8> {
    match lsid.get("uid") {
        Some(ValueRef::Binary(0, uid)) => uid.to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_is_told_what_anothers_write_was_answered() {
    let engine = engine();
    let was_retried = |reply: &DocBuf| reply.as_raw().get("retriedStmtIds").is_some();
    let server = serve_users(&engine);
    let (mut one, mut two) = (logged_in(&server, "test", "one"), logged_in(&server, "test", "two"));
    assert!(!was_retried(&one.ok(insert(1))));
    assert!(was_retried(&one.ok(insert(1))));
    // The same id and number: for the other user it is a write that has not been carried out yet.
    assert!(!was_retried(&two.ok(insert(2))));
    drop((one, two));
    server.stop().unwrap();
    let server = serve(&engine);
    let mut root = logged_in(&server, "admin", "root");
    let mut other = root.ok(insert(3));
    assert!(!was_retried(&other), "{other:?}");
    for (user, own) in [("two", 2), ("one", 1)] {
        let mut client = logged_in(&server, "test", user);
        other = client.ok(insert(own));
        assert!(was_retried(&other), "{user}: {other:?}");
    }
    let found = batch(&root.ok(doc! { "find": "c" }));
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn a_session_is_shown_with_its_user() {
    let engine = engine();
    let server = serve_users(&engine);
    let (mut one, mut two) = (logged_in(&server, "test", "one"), logged_in(&server, "test", "two"));
    let mut root = logged_in(&server, "admin", "root");
    for client in [&mut one, &mut two] {
        client.ok(doc! { "find": "c", "lsid": &lsid() });
    }
    let sessions = |client: &mut Client, options: &DocBuf| {
        let reply = client.run(aggregate(doc! { "$listLocalSessions": options }));
        if !is_ok(&reply) {
            assert_eq!(int(&reply, "code"), 13, "{reply:?}");
            return None;
        }
        let shown = batch(&reply);
        let ours = shown.iter().filter(|entry| {
            let id = entry.as_raw().get_doc("_id").unwrap();
            matches!(id.get("id"), Some(ValueRef::Binary(4, id)) if id == ID)
        });
        let mut users: Vec<String> = ours
            .map(|entry| {
                let entry = entry.as_raw();
                let user = entry.get_str("user").unwrap();
                assert_eq!(uid_in(entry.get_doc("_id").unwrap()), uid(user));
                assert!(matches!(entry.get("lastUse"), Some(ValueRef::DateTime(_))));
                user.to_string()
            })
            .collect();
        users.sort();
        Some(users)
    };
    let users = |names: &[&str]| {
        let users: Vec<DocBuf> = names.iter().map(|name| doc! { "user": *name, "db": "test" }).collect();
        doc! { "users": &users.iter().map(ValueRef::from).collect::<ArrayBuf>() }
    };
    let named = |names: &[&str]| Some(names.iter().map(|name| format!("{name}@test")).collect::<Vec<_>>());
    assert_eq!(sessions(&mut one, &doc! {}), named(&["one"]));
    assert_eq!(sessions(&mut one, &users(&["one"])), named(&["one"]));
    assert_eq!(sessions(&mut one, &users(&["one", "two"])), None);
    assert_eq!(sessions(&mut one, &doc! { "allUsers": true }), None);
    assert_eq!(sessions(&mut root, &doc! {}), named(&[]));
    assert_eq!(sessions(&mut root, &doc! { "allUsers": true }), named(&["one", "two"]));
    assert_eq!(sessions(&mut root, &users(&["two"])), named(&["two"]));
    // Nobody acts in another's session by saying whose it is.
    let foreign = doc! { "id": ValueRef::Binary(4, &ID), "uid": ValueRef::Binary(0, &uid("one@test")) };
    assert_eq!(int(&two.run(doc! { "find": "c", "lsid": &foreign }), "code"), 13);
    let list: ArrayBuf = [foreign.clone()].iter().map(ValueRef::from).collect();
    assert_eq!(int(&two.run(doc! { "endSessions": &list }), "code"), 13);
    assert_eq!(int(&two.run(doc! { "killSessions": &list }), "code"), 13);
    one.ok(doc! { "find": "c", "lsid": &foreign });
    let all: ArrayBuf = [doc! { "user": "one", "db": "test" }].iter().map(ValueRef::from).collect();
    root.ok(doc! { "killAllSessions": &all });
    assert_eq!(sessions(&mut root, &doc! { "allUsers": true }), named(&["two"]));
    let pattern: ArrayBuf =
        [doc! { "uid": ValueRef::Binary(0, &uid("two@test")) }].iter().map(ValueRef::from).collect();
    root.ok(doc! { "killAllSessionsByPattern": &pattern });
    assert_eq!(sessions(&mut root, &doc! { "allUsers": true }), named(&[]));
}

#[test]
fn change_events_and_current_op_tell_whose_session_it_is() {
    let engine = engine();
    let server = serve_users(&engine);
    let mut one = logged_in(&server, "test", "one");
    one.ok(doc! { "create": "c" });
    let stages: ArrayBuf = [doc! { "$changeStream": RawDoc::EMPTY }].iter().map(ValueRef::from).collect();
    let opened = one.ok(doc! { "aggregate": "c", "pipeline": &stages, "cursor": RawDoc::EMPTY });
    let cursor = opened.as_raw().get_doc("cursor").and_then(|cursor| cursor.get("id")).unwrap();
    let mut begin = insert(1);
    begin.append("startTransaction", true).append("autocommit", false);
    one.ok(begin);
    // The transaction waits for its next command: an idle session, its own and not another's.
    let mut root = logged_in(&server, "admin", "root");
    let mut two = logged_in(&server, "test", "two");
    let idle = |client: &mut Client, options: DocBuf| {
        let reply = client.run_on("admin", aggregate(doc! { "$currentOp": &options }));
        assert!(is_ok(&reply), "{reply:?}");
        let shown = batch(&reply);
        shown.into_iter().filter(|op| op.as_raw().get_str("type") == Some("idleSession")).collect::<Vec<_>>()
    };
    assert!(idle(&mut two, doc! {}).is_empty() && idle(&mut root, doc! {}).is_empty());
    for shown in [idle(&mut one, doc! {}), idle(&mut root, doc! { "allUsers": true })] {
        let [session] = &shown[..] else { panic!("{shown:?}") };
        let session = session.as_raw();
        assert_eq!(uid_in(session.get_doc("lsid").unwrap()), uid("one@test"));
        let about = session.get_doc("transaction").unwrap();
        assert!(matches!(about.get_doc("parameters").unwrap().get("txnNumber"), Some(ValueRef::Int64(1))));
        let micros = |name: &str| match about.get(name) {
            Some(ValueRef::Int64(micros)) => micros,
            other => panic!("{name}: {other:?}"),
        };
        // Each is cut to whole microseconds by itself.
        assert!((micros("timeOpenMicros") - micros("timeActiveMicros") - micros("timeInactiveMicros")).abs() <= 1);
        assert!(micros("timeActiveMicros") > 0 && micros("timeInactiveMicros") > 0);
    }
    let hidden = doc! { "allUsers": true, "idleSessions": false };
    assert!(idle(&mut root, hidden).is_empty());
    let mut commit = doc! { "commitTransaction": 1, "lsid": &lsid(), "txnNumber": 1i64, "autocommit": false };
    commit.append("$db", "admin");
    one.send(&commit, 0);
    assert!(is_ok(&one.receive().2));
    assert!(idle(&mut root, doc! { "allUsers": true }).is_empty());
    let more = one.ok(doc! { "getMore": cursor, "collection": "c" });
    let events =
        more.as_raw().get_doc("cursor").and_then(|cursor| cursor.get("nextBatch")).and_then(ValueRef::as_array);
    let event =
        events.and_then(|events| events.get(0)).and_then(ValueRef::as_doc).unwrap_or_else(|| panic!("{more:?}"));
    assert_eq!(uid_in(event.get_doc("lsid").unwrap()), uid("one@test"));
}

#[test]
fn idle_cursors_are_shown_to_who_asks_and_who_opened_them() {
    let engine = engine();
    let server = serve_users(&engine);
    let (mut one, mut two) = (logged_in(&server, "test", "one"), logged_in(&server, "test", "two"));
    let docs: Vec<DocBuf> = (0..10).map(|id| doc! { "_id": id }).collect();
    one.ok(doc! { "insert": "c", "documents": &docs.iter().map(ValueRef::from).collect::<ArrayBuf>() });
    let found = one.ok(doc! { "find": "c", "batchSize": 2, "lsid": &lsid() });
    let id = found.as_raw().get_doc("cursor").and_then(|cursor| cursor.get("id")).unwrap();
    one.ok(doc! { "getMore": id, "collection": "c", "batchSize": 3, "lsid": &lsid() });
    let idle = |client: &mut Client, options: DocBuf| {
        let shown = batch(&client.run_on("admin", aggregate(doc! { "$currentOp": &options })));
        shown.into_iter().filter(|op| op.as_raw().get_str("type") == Some("idleCursor")).collect::<Vec<_>>()
    };
    assert!(idle(&mut one, doc! {}).is_empty());
    assert!(idle(&mut two, doc! { "idleCursors": true }).is_empty());
    let shown = idle(&mut one, doc! { "idleCursors": true });
    let [cursor] = &shown[..] else { panic!("{shown:?}") };
    let cursor = cursor.as_raw();
    assert_eq!((cursor.get_str("ns"), cursor.get_str("planSummary")), (Some("test.c"), Some("COLLSCAN")));
    assert_eq!(uid_in(cursor.get_doc("lsid").unwrap()), uid("one@test"));
    let about = cursor.get_doc("cursor").unwrap();
    assert_eq!(about.get("cursorId").unwrap().to_string(), id.to_string());
    let figure = |name: &str| about.get(name).unwrap().to_string();
    assert_eq!((figure("nDocsReturned").as_str(), figure("nBatchesReturned").as_str()), ("5", "2"));
    assert_eq!(about.get_doc("originatingCommand").unwrap().get_str("find"), Some("c"));
    // A long command is cut for who asks for that.
    let long = doc! { "find": "c", "filter": &doc! { "x": "x".repeat(3_000).as_str() }, "batchSize": 0 };
    one.ok(long);
    let cut = |client: &mut Client, truncate: bool| {
        let all = idle(client, doc! { "idleCursors": true, "truncateOps": truncate });
        let origins = all.iter().filter_map(|op| op.as_raw().get_doc("cursor")?.get_doc("originatingCommand"));
        origins.filter(|origin| origin.get_str("$truncated").is_some()).count()
    };
    assert_eq!((cut(&mut one, false), cut(&mut one, true)), (0, 1));
}
