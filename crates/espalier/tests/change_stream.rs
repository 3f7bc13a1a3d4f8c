//! Change streams on the real binary, over real sockets: through kill -9 every acknowledged write is told exactly once and
//! in order; idle watchers cost nothing; what is gone is said to be gone.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use espalier_value::{DocBuf, RawDoc, ValueRef, doc};
use support::{Client, Numbers, Server, batch, cursor_id, list, number};

/// Where the server is at the moment.
type Place = Arc<Mutex<SocketAddr>>;

const WRITERS: i32 = 16;
const DOCUMENTS: i32 = 8;
const KILLS: usize = 6;

/// A connection to wherever the server is, once it answers.
fn reach(place: &Place) -> Client {
    loop {
        let address = *place.lock().unwrap();
        if let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            stream.set_nodelay(true).unwrap();
            return Client::on(stream);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The reply, unless the server went away.
fn attempt(client: &mut Client, mut command: DocBuf) -> Option<DocBuf> {
    command.append("$db", "test");
    client.try_send(&command).ok()?;
    let reply = client.try_receive().ok()?;
    // A server that stops says so before it goes.
    matches!(reply.as_raw().get("ok"), Some(ValueRef::Double(1.0))).then_some(reply)
}

/// Raises the versions of its own documents, one by one; gives the last acknowledged version of each.
fn write(place: &Place, stop: &AtomicBool, writer: i32) -> HashMap<i32, i64> {
    let mut numbers = Numbers(writer as u64 + 1);
    let mut acknowledged: HashMap<i32, i64> = HashMap::new();
    let mut client = reach(place);
    while !stop.load(Ordering::Relaxed) {
        let id = writer * DOCUMENTS + numbers.below(DOCUMENTS as u64) as i32;
        // What the document is at: a write that was not acknowledged may have happened.
        let found = doc! { "find": "c", "filter": &doc! { "_id": id }, "limit": 1, "singleBatch": true };
        let Some(reply) = attempt(&mut client, found) else {
            client = reach(place);
            continue;
        };
        let at = batch(&reply).first().map_or(0, |doc| number(*doc, "v"));
        assert!(at >= acknowledged.get(&id).copied().unwrap_or(0), "an acknowledged write is lost");
        let update = doc! { "q": &doc! { "_id": id }, "u": &doc! { "$set": &doc! { "v": at + 1 } }, "upsert": true };
        match attempt(&mut client, doc! { "update": "c", "updates": &list([update]) }) {
            Some(_) => drop(acknowledged.insert(id, at + 1)),
            None => client = reach(place),
        }
    }
    acknowledged
}

fn open(client: &mut Client, options: &DocBuf) -> Option<DocBuf> {
    let stages = list([doc! { "$changeStream": options }]);
    attempt(client, doc! { "aggregate": "c", "pipeline": &stages, "cursor": &doc! {} })
}

fn token(reply: &DocBuf) -> DocBuf {
    DocBuf::from_raw(reply.as_raw().get_doc("cursor").unwrap().get_doc("postBatchResumeToken").unwrap())
}

/// The version that an event tells.
fn version(event: RawDoc<'_>) -> (i32, i64) {
    let id = number(event.get_doc("documentKey").unwrap(), "_id") as i32;
    let v = match event.get_str("operationType").unwrap() {
        "insert" => number(event.get_doc("fullDocument").unwrap(), "v"),
        "update" => number(event.get_doc("updateDescription").unwrap().get_doc("updatedFields").unwrap(), "v"),
        other => panic!("{other}"),
    };
    (id, v)
}

/// Reads the stream to its end once told to stop; resumes wherever it was broken off. Gives the versions of each document
/// in the order in which they were told.
fn watch(place: &Place, stop: &AtomicBool, start: ValueRef<'_>) -> (HashMap<i32, Vec<i64>>, usize) {
    let mut seen: HashMap<i32, Vec<i64>> = HashMap::new();
    let mut last: Option<DocBuf> = None;
    let mut resumed = 0;
    loop {
        let mut client = reach(place);
        let options = match &last {
            None => doc! { "startAtOperationTime": start },
            Some(token) => doc! { "resumeAfter": token },
        };
        let Some(mut reply) = open(&mut client, &options) else { continue };
        resumed += 1;
        loop {
            let events = batch(&reply);
            for event in &events {
                let (id, v) = version(*event);
                seen.entry(id).or_default().push(v);
            }
            let (is_end, id) = (events.is_empty(), cursor_id(&reply));
            last = Some(token(&reply));
            if is_end && stop.load(Ordering::Relaxed) {
                return (seen, resumed);
            }
            let more = doc! { "getMore": id, "collection": "c", "maxTimeMS": 300 };
            match attempt(&mut client, more) {
                Some(next) => reply = next,
                None => break,
            }
        }
    }
}

#[test]
fn every_acknowledged_write_is_told_once_and_in_order_through_kills() {
    let mut server = Server::start(&[]);
    let created = server.connect().ok(doc! { "create": "c" });
    let start = created.as_raw().get("operationTime").unwrap();
    let place: Place = Arc::new(Mutex::new(server.address()));
    let (writing, watching) = (AtomicBool::new(false), AtomicBool::new(false));
    let (acknowledged, watched) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (place, writing) = (&place, &writing);
                scope.spawn(move || write(place, writing, writer))
            })
            .collect();
        let watchers: Vec<_> = (0..2).map(|_| scope.spawn(|| watch(&place, &watching, start))).collect();
        let mut numbers = Numbers(7);
        for _ in 0..KILLS {
            std::thread::sleep(Duration::from_millis(300 + numbers.below(700)));
            server.kill_and_restart();
            *place.lock().unwrap() = server.address();
        }
        std::thread::sleep(Duration::from_millis(500));
        writing.store(true, Ordering::Relaxed);
        let acknowledged: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        watching.store(true, Ordering::Relaxed);
        let watched: Vec<_> = watchers.into_iter().map(|watcher| watcher.join().unwrap()).collect();
        (acknowledged, watched)
    });
    let acknowledged: HashMap<i32, i64> = acknowledged.into_iter().flatten().collect();
    let total: i64 = acknowledged.values().sum();
    assert!(total > 200, "too few writes to prove anything: {total}");
    let mut client = server.connect();
    for (seen, resumed) in watched {
        assert!(resumed > KILLS / 2, "the stream was hardly ever resumed: {resumed}");
        for (id, v) in &acknowledged {
            let told = &seen[id];
            assert_eq!(
                *told,
                (1..=told.len() as i64).collect::<Vec<_>>(),
                "document {id}: each version once, in order"
            );
            assert!(told.len() as i64 >= *v, "document {id}: version {v} was acknowledged");
            let now = client.ok(doc! { "find": "c", "filter": &doc! { "_id": *id } });
            assert_eq!(number(batch(&now)[0], "v"), told.len() as i64, "document {id}: told is what is there");
        }
    }
    server.check(&["c"]);
}

#[test]
fn idle_watchers_cost_nothing_and_hear_of_an_event_at_once() {
    let server = Server::start(&[]);
    server.connect().ok(doc! { "create": "c" });
    const WATCHERS: usize = 400;
    let mut watchers: Vec<Client> = (0..WATCHERS).map(|_| server.connect()).collect();
    for watcher in &mut watchers {
        let reply = open(watcher, &doc! {}).unwrap();
        let more = doc! { "getMore": cursor_id(&reply), "collection": "c", "maxTimeMS": 20_000, "$db": "test" };
        watcher.try_send(&more).unwrap();
    }
    std::thread::sleep(Duration::from_millis(500));
    let before = server.processor_time();
    std::thread::sleep(Duration::from_secs(3));
    let used = server.processor_time() - before;
    assert!(used < Duration::from_millis(100), "{WATCHERS} idle watchers took {used:?} of processor time in 3 s");
    // Only a few of them keep a thread, and that not for long.
    let begun = Instant::now();
    loop {
        let threads = server.memory_kib("Threads");
        if threads < 60 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{threads} threads for {WATCHERS} idle watchers");
        std::thread::sleep(Duration::from_millis(200));
    }
    let begun = Instant::now();
    server.connect().ok(doc! { "insert": "c", "documents": &list([doc! { "_id": 1 }]) });
    for watcher in &mut watchers {
        let reply = watcher.try_receive().unwrap();
        assert_eq!(batch(&reply).len(), 1, "{reply:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn a_resume_point_that_is_gone_is_told() {
    let server = Server::start(&["--history-bytes", "1000000"]);
    let mut client = server.connect();
    client.ok(doc! { "create": "c" });
    let early = token(&open(&mut client, &doc! {}).unwrap());
    let text = "x".repeat(1 << 20);
    for n in 0..120 {
        client.ok(doc! { "insert": "c", "documents": &list([doc! { "_id": n, "text": text.as_str() }]) });
    }
    let late = token(&open(&mut client, &doc! {}).unwrap());
    let deadline = Instant::now() + Duration::from_secs(30);
    let lost = loop {
        let stages = list([doc! { "$changeStream": &doc! { "resumeAfter": &early } }]);
        let reply = client.run(doc! { "aggregate": "c", "pipeline": &stages, "cursor": &doc! { "batchSize": 1 } });
        if support::error_code(&reply).is_some() {
            break reply;
        }
        assert!(Instant::now() < deadline, "the history is still there");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(support::error_code(&lost), Some(286), "{lost:?}");
    let labels = lost.as_raw().get("errorLabels").and_then(ValueRef::as_array).unwrap();
    assert_eq!(labels.get(0).and_then(ValueRef::as_str), Some("NonResumableChangeStreamError"));
    client.ok(doc! { "insert": "c", "documents": &list([doc! { "_id": -1 }]) });
    let resumed = open(&mut client, &doc! { "resumeAfter": &late }).unwrap();
    let events = batch(&resumed);
    assert_eq!(events.len(), 1);
    assert_eq!(number(events[0].get_doc("documentKey").unwrap(), "_id"), -1);
}
