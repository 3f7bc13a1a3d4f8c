//! Commands that are ended from outside: time limits, `killOp`, clients that go away, and our own bugs.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use espalier_query::Context;
use espalier_query::stage::Spill;
use espalier_store::{
    Begin, CommitToken, DefaultCollation, Feed, Namespace, Remembered, RememberedSession, SessionId, Store,
    Transaction, Watch,
};
use espalier_value::{ArrayBuf, DocBuf, Error, RawDoc, Result, ValueRef, doc};
use support::client::{batch, cursor_id};
use support::{Client, options, serve};

/// A cursor on a capped collection whose next `getMore` will wait.
fn waiting_cursor(client: &mut Client) -> i64 {
    client.ok(doc! { "create": "k", "capped": true, "size": 4096 });
    let mut docs = ArrayBuf::new();
    docs.push(&doc! { "_id": 1 });
    client.ok(doc! { "insert": "k", "documents": &docs });
    cursor_id(&client.ok(doc! { "find": "k", "tailable": true, "awaitData": true }))
}

/// The number of the operation with that command name, once it runs.
fn operation(client: &mut Client, command: &str) -> Option<i64> {
    let reply = client.run_on("admin", doc! { "currentOp": 1 });
    let list = reply.as_raw().get("inprog").unwrap().as_array().unwrap();
    let operations = list.iter().filter_map(ValueRef::as_doc);
    operations
        .filter(|op| op.get_doc("command").and_then(RawDoc::first).is_some_and(|elem| elem.name() == command))
        .find_map(|op| match op.get("opid") {
            Some(ValueRef::Int32(id)) => Some(id.into()),
            Some(ValueRef::Int64(id)) => Some(id),
            _ => None,
        })
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "waited too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_operation_ends_at_once() {
    let server = serve();
    let address = server.local_addr();
    let mut client = Client::connect(address);
    let id = waiting_cursor(&mut client);
    let begun = Instant::now();
    let waiting = std::thread::spawn(move || {
        Client::connect(address).run(doc! { "getMore": id, "collection": "k", "maxTimeMS": 60_000 })
    });
    let op = wait_for(|| operation(&mut client, "getMore"));
    client.run_on("admin", doc! { "killOp": 1, "op": op });
    let reply = waiting.join().unwrap();
    assert!(matches!(reply.as_raw().get("code"), Some(ValueRef::Int32(11601))), "{reply:?}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(client.code(doc! { "getMore": id, "collection": "k" }), 43);
}

#[test]
fn a_command_whose_client_is_gone_ends() {
    let server = serve();
    let address = server.local_addr();
    let mut client = Client::connect(address);
    let id = waiting_cursor(&mut client);
    let mut leaver = Client::connect(address);
    leaver.send(&doc! { "getMore": id, "collection": "k", "maxTimeMS": 60_000, "$db": "test" }, 0);
    wait_for(|| operation(&mut client, "getMore"));
    drop(leaver);
    wait_for(|| operation(&mut client, "getMore").is_none().then_some(()));
}

#[test]
fn a_killed_cursor_ends_its_get_more() {
    let server = serve();
    let address = server.local_addr();
    let mut client = Client::connect(address);
    let id = waiting_cursor(&mut client);
    let waiting = std::thread::spawn(move || {
        Client::connect(address).run(doc! { "getMore": id, "collection": "k", "maxTimeMS": 60_000 })
    });
    wait_for(|| operation(&mut client, "getMore"));
    // Taken by a getMore, it cannot be taken by another.
    assert_eq!(client.code(doc! { "getMore": id, "collection": "k" }), 12051);
    let mut ids = ArrayBuf::new();
    ids.push(id);
    client.ok(doc! { "killCursors": "k", "cursors": &ids });
    let reply = waiting.join().unwrap();
    assert!(matches!(reply.as_raw().get("code"), Some(ValueRef::Int32(237))), "{reply:?}");
}

#[test]
fn a_time_limit_ends_a_long_command() {
    let server = serve();
    let mut client = Client::connect(server.local_addr());
    let mut docs = ArrayBuf::new();
    for i in 0..2000 {
        docs.push(&doc! { "_id": i });
    }
    client.ok(doc! { "insert": "c", "documents": &docs });
    let mut range = ArrayBuf::new();
    range.push(0).push(200_000);
    let size = doc! { "$size": &doc! { "$range": &range } };
    let mut stages = ArrayBuf::new();
    stages.push(&doc! { "$addFields": &doc! { "n": &size } });
    stages.push(&doc! { "$group": &doc! { "_id": ValueRef::Null, "n": &doc! { "$sum": "$n" } } });
    let aggregate = doc! { "aggregate": "c", "pipeline": &stages, "cursor": RawDoc::EMPTY };
    let mut limited = aggregate.clone();
    limited.append("maxTimeMS", 10);
    // On a busy machine a limit may be noticed late, but not again and again.
    let shows = (0..10).any(|_| {
        let begun = Instant::now();
        assert_eq!(client.code(limited.clone()), 50);
        let took = begun.elapsed();
        assert_eq!(batch(&client.ok(aggregate.clone())).len(), 1);
        begun.elapsed() > took * 2
    });
    assert!(shows, "the command was too short for a limit to show");
}

#[test]
fn shutdown_ends_waiting_commands() {
    let server = serve();
    let address = server.local_addr();
    let mut client = Client::connect(address);
    let id = waiting_cursor(&mut client);
    let waiting = std::thread::spawn(move || {
        Client::connect(address).run(doc! { "getMore": id, "collection": "k", "maxTimeMS": 60_000 })
    });
    wait_for(|| operation(&mut client, "getMore"));
    let begun = Instant::now();
    server.stop().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(8));
    let reply = waiting.join().unwrap();
    assert!(matches!(reply.as_raw().get("code"), Some(ValueRef::Int32(11600))), "{reply:?}");
}

/// A store with a bug that shows once it is armed.
#[derive(Default)]
struct Broken {
    armed: AtomicBool,
}

impl Store for Broken {
    fn begin(&self, _: Begin) -> Result<Box<dyn Transaction>> {
        assert!(!self.armed.load(Ordering::Relaxed), "as it was meant to");
        Err(Error::internal("not yet armed"))
    }

    fn begin_at(&self, begin: Begin, _: Option<u64>) -> Result<(Box<dyn Transaction>, u64)> {
        self.begin(begin).map(|transaction| (transaction, 0))
    }

    fn time(&self) -> u64 {
        0
    }

    fn default_collation(&self, _: &Namespace) -> DefaultCollation {
        DefaultCollation::default()
    }

    fn wait_durable(&self, _: CommitToken) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn status(&self) -> DocBuf {
        DocBuf::new()
    }

    fn spill(&self) -> Option<Arc<dyn Spill>> {
        None
    }

    fn remembered(&self, _: &SessionId, _: i64) -> Result<Vec<Remembered>> {
        Ok(Vec::new())
    }

    fn remembered_sessions(&self) -> Result<Vec<RememberedSession>> {
        Ok(Vec::new())
    }

    fn forget(&self, _: &SessionId, _: i32) -> Result<()> {
        Ok(())
    }

    fn durable_time(&self) -> u64 {
        0
    }

    fn changes(&self, _: Watch) -> Result<Box<dyn Feed>> {
        Err(Error::internal("there is nothing to tell"))
    }

    fn on_change(&self, _: Box<dyn Fn() + Send + Sync>) {}

    fn jobs(&self) -> Vec<DocBuf> {
        Vec::new()
    }

    fn settle(&self, _: &Namespace, _: &Context) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_ends_one_command_and_nothing_else() {
    let store = Arc::new(Broken::default());
    let server = espalier_server::start(options(), store.clone()).unwrap();
    store.armed.store(true, Ordering::Relaxed);
    let mut client = Client::connect(server.local_addr());
    assert_eq!(client.code(doc! { "find": "c" }), 1);
    client.ok(doc! { "ping": 1 });
    assert_eq!(client.code(doc! { "count": "c" }), 1);
}
