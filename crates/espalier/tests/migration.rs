//! Patterns are declared, changed and dropped while sixteen clients write, and the server is killed in the middle: nothing
//! that was acknowledged is lost, doubled or out of order, and what was cut off goes on.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use espalier_value::{DocBuf, RawDoc, ValueRef, doc};
use support::{Client, Server, batch, error_code, list, number, together};

const CLIENTS: usize = 16;
const ROUNDS: usize = 3;
const STILL: i64 = 1_500;

/// How far a client is: the next number of its own list, of its part of the shared list, and of its readings.
#[derive(Clone, Copy, Default)]
struct Next {
    own: i64,
    shared: i64,
    reading: i64,
}

/// Sends a command; `None` once the server is gone.
fn send(client: &mut Client, mut command: DocBuf) -> Option<DocBuf> {
    command.append("$db", "test");
    client.try_send(&command).ok()?;
    client.try_receive().ok()
}

/// Writes until the server is gone; what it had sent last is not counted.
fn write(address: std::net::SocketAddr, me: i64, mut next: Next) -> Next {
    let mut client = Client::connect(address);
    loop {
        let push = |id: i64, element: &DocBuf| {
            let push = doc! { "$push": &doc! { "list": element } };
            doc! { "update": "lists", "updates": &list([doc! { "q": &doc! { "_id": id }, "u": &push }]) }
        };
        let Some(reply) = send(&mut client, push(me, &doc! { "n": next.own })) else { return next };
        assert_eq!((error_code(&reply), number(reply.as_raw(), "nModified")), (None, 1), "{reply:?}");
        next.own += 1;
        let Some(reply) = send(&mut client, push(-1, &doc! { "w": me, "n": next.shared })) else { return next };
        assert_eq!((error_code(&reply), number(reply.as_raw(), "nModified")), (None, 1), "{reply:?}");
        next.shared += 1;
        let id = me * 1_000_000 + next.reading;
        let reading =
            doc! { "_id": id, "s": me % 3, "ts": ValueRef::DateTime(next.reading * 60_000), "v": next.reading };
        let insert = doc! { "insert": "readings", "documents": &list([reading]) };
        let Some(reply) = send(&mut client, insert) else { return next };
        assert_eq!((error_code(&reply), number(reply.as_raw(), "n")), (None, 1), "{reply:?}");
        next.reading += 1;
    }
}

fn patterns(collection: &str, on: bool) -> DocBuf {
    let pattern = match collection {
        "lists" => doc! { "outlier": &doc! { "array": "list", "threshold": 10, "batchSize": 10 } },
        _ => doc! { "bucket": &doc! { "by": &list_of("s"), "time": "ts", "every": "1h", "maxCount": 40 } },
    };
    let all = if on { list([pattern]) } else { list([]) };
    doc! { "collMod": collection, "patterns": &all }
}

fn list_of(text: &str) -> espalier_value::ArrayBuf {
    [ValueRef::String(text)].into_iter().collect()
}

/// Every document of a collection.
fn all(client: &mut Client, collection: &str) -> Vec<DocBuf> {
    let mut reply = client.ok(doc! { "find": collection, "batchSize": 20_000 });
    let mut docs = Vec::new();
    loop {
        docs.extend(batch(&reply).into_iter().map(DocBuf::from_raw));
        let id = support::cursor_id(&reply);
        if id == 0 {
            return docs;
        }
        reply = client.ok(doc! { "getMore": id, "collection": collection });
    }
}

fn is_migrating(client: &mut Client) -> bool {
    let reply = client.ok(doc! { "listCollections": 1 });
    batch(&reply).iter().any(|info| info.get_doc("options").unwrap().elem("patternJob").is_some())
}

/// The numbers of one writer's elements in a list.
fn numbers(doc: RawDoc<'_>, writer: Option<i64>) -> Vec<i64> {
    let Some(ValueRef::Array(list)) = doc.get("list") else { panic!("{doc:?}") };
    let elements = list.iter().map(|element| element.as_doc().unwrap());
    elements.filter(|e| writer.is_none_or(|writer| number(*e, "w") == writer)).map(|e| number(e, "n")).collect()
}

/// What is there is what was acknowledged, and at most the one write that was under way.
fn check(client: &mut Client, next: &mut [Next]) {
    let lists = all(client, "lists");
    let of = |id: i64| lists.iter().filter(|doc| number(doc.as_raw(), "_id") == id).collect::<Vec<_>>();
    let readings = all(client, "readings");
    let mut ids: Vec<i64> = readings.iter().map(|doc| number(doc.as_raw(), "_id")).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "a reading is there twice");
    let run = |found: &[i64], acknowledged: i64| {
        assert_eq!(found, (0..found.len() as i64).collect::<Vec<_>>(), "in order, each once");
        let found = found.len() as i64;
        assert!(found == acknowledged || found == acknowledged + 1, "{found} of {acknowledged}");
        found
    };
    for (me, next) in next.iter_mut().enumerate() {
        let me = me as i64;
        assert_eq!(of(me).len(), 1);
        next.own = run(&numbers(of(me)[0].as_raw(), None), next.own);
        next.shared = run(&numbers(of(-1)[0].as_raw(), Some(me)), next.shared);
        let mine: Vec<i64> =
            ids.iter().filter(|id| **id / 1_000_000 == me && **id >= 0).map(|id| id % 1_000_000).collect();
        next.reading = run(&mine, next.reading);
    }
    assert_eq!(lists.iter().filter(|doc| number(doc.as_raw(), "_id") < -1).count() as i64, STILL);
    assert_eq!(ids.iter().filter(|id| **id < 0).count() as i64, STILL);
}

#[test]
fn nothing_is_lost_while_patterns_come_and_go_and_the_server_is_killed() {
    let mut server = Server::start(&[]);
    let mut client = server.connect();
    let empty = |id: i64| doc! { "_id": id, "list": &list([]) };
    client.ok(doc! { "insert": "lists", "documents": &list((-1..CLIENTS as i64).map(empty)) });
    // Enough that a migration is under way when the kill comes.
    let long = |id: i64| doc! { "_id": -2 - id, "list": &list((0..25i64).map(|n| doc! { "n": n })) };
    client.ok(doc! { "insert": "lists", "documents": &list((0..STILL).map(long)) });
    let still = |id: i64| doc! { "_id": -1 - id, "s": -1i64, "ts": ValueRef::DateTime(id * 60_000), "v": 0i64 };
    client.ok(doc! { "insert": "readings", "documents": &list((0..STILL).map(still)) });
    drop(client);
    let mut next = vec![Next::default(); CLIENTS];
    let mut resumed = 0;
    for round in 0..ROUNDS {
        let address = server.address();
        let stop = Arc::new(AtomicBool::new(false));
        let migrator = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut client = Client::connect(address);
                let mut turn = round;
                while !stop.load(Ordering::Relaxed) {
                    let collection = ["lists", "readings"][turn % 2];
                    let Some(reply) = send(&mut client, patterns(collection, turn / 2 % 2 == 0)) else { return };
                    assert!(matches!(error_code(&reply), None | Some(117)), "{reply:?}");
                    turn += 1;
                }
            }
        });
        let started = next.clone();
        let writers = std::thread::spawn(move || together(CLIENTS, move |me| write(address, me as i64, started[me])));
        std::thread::sleep(Duration::from_millis(700 + 400 * round as u64));
        server.kill_and_restart();
        stop.store(true, Ordering::Relaxed);
        next = writers.join().unwrap();
        migrator.join().unwrap();
        let mut client = server.connect();
        resumed += usize::from(is_migrating(&mut client));
        check(&mut client, &mut next);
        let deadline = Instant::now() + Duration::from_secs(60);
        while is_migrating(&mut client) {
            assert!(Instant::now() < deadline, "a migration does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        check(&mut client, &mut next);
        server.check(&["lists", "readings"]);
    }
    assert!(resumed > 0, "no kill hit a migration");
}

#[test]
fn a_migration_leaves_clients_their_time_and_is_stopped_by_kill_op() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    for first in (0..12_000i64).step_by(3_000) {
        let long = |id: i64| doc! { "_id": id, "list": &list((0..15i64).map(|n| doc! { "n": n })) };
        client.ok(doc! { "insert": "lists", "documents": &list((first..first + 3_000).map(long)) });
    }
    let address = server.address();
    let modify = std::thread::spawn(move || Client::connect(address).run(patterns("lists", true)));
    let mut longest = Duration::ZERO;
    let mut op = None;
    let begun = Instant::now();
    while (op.is_none() || begun.elapsed() < Duration::from_millis(300)) && !modify.is_finished() {
        let before = Instant::now();
        client.ok(doc! { "find": "lists", "filter": &doc! { "_id": 5i64 } });
        longest = longest.max(before.elapsed());
        let reply = client.run_on("admin", doc! { "currentOp": 1, "desc": "PatternMigration" });
        let inprog = reply.as_raw().get("inprog").unwrap().as_array().unwrap();
        op = inprog.iter().next().map(|job| number(job.as_doc().unwrap(), "opid")).or(op);
    }
    // Coarse: a pause of the machine is no pause of the server. `cargo xtask bench migration` measures it.
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    assert!(!modify.is_finished(), "12,000 documents were migrated in {:?}", begun.elapsed());
    client.run_on("admin", doc! { "killOp": 1, "op": op.unwrap() });
    assert_eq!(error_code(&modify.join().unwrap()), Some(11601));
    assert!(!is_migrating(&mut client));
    let reply = client.ok(doc! { "listCollections": 1 });
    assert_eq!(batch(&reply).len(), 1, "nothing is left beside the collection");
    assert_eq!(all(&mut client, "lists").len(), 12_000);
    server.check(&["lists"]);
}
