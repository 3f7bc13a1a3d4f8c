//! Counters with the approximate pattern on the real binary: nothing is lost and nothing counted twice across kill -9 and
//! retries, and what was pending is flushed after a restart.
#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};
use support::{Client, Numbers, Server, batch, error_code, int, list, number};

const CLIENTS: u64 = 8;

fn declaration(within: &str, durable: bool) -> ArrayBuf {
    let fields: ArrayBuf = [ValueRef::String("views")].into_iter().collect();
    let options = doc! {
        "fields": &fields, "flush": &doc! { "count": 20, "within": within }, "stamp": "flushed", "durable": durable
    };
    list([doc! { "approximate": &options }])
}

/// A client with a session of its own, which sends an increment again until it gets an answer.
struct Counting {
    session: u8,
    number: i64,
    acknowledged: i64,
}

impl Counting {
    fn increment(&self) -> DocBuf {
        let update = doc! { "q": &doc! { "_id": 1 }, "u": &doc! { "$inc": &doc! { "views": 1 } } };
        let session = [self.session; 16];
        let mut command = doc! { "update": "c", "updates": &list([update]) };
        command.append_doc("lsid", |lsid| {
            lsid.append("id", ValueRef::Binary(4, &session));
        });
        command.append("txnNumber", self.number).append("$db", "test");
        command
    }

    /// Counts until the server is gone or it is told to stop.
    fn count(&mut self, address: SocketAddr, stop: &AtomicBool) {
        let mut client = Client::connect(address);
        while !stop.load(Ordering::Relaxed) {
            let sent = client.try_send(&self.increment()).and_then(|()| client.try_receive());
            // Whether it was done nobody knows; the same number asks again.
            let Ok(reply) = sent else { return };
            assert_eq!((int(&reply, "n"), error_code(&reply)), (1, None), "{reply:?}");
            self.acknowledged += 1;
            self.number += 1;
        }
    }
}

#[test]
fn nothing_is_lost_or_doubled_across_kills_and_retries() {
    let mut server = Server::start(&[]);
    server.connect().ok(doc! { "create": "c", "patterns": &declaration("100ms", true) });
    server.connect().ok(doc! { "insert": "c", "documents": &list([doc! { "_id": 1, "views": 0 }]) });
    let mut clients: Vec<Counting> =
        (0..CLIENTS).map(|client| Counting { session: client as u8 + 1, number: 1, acknowledged: 0 }).collect();
    let mut random = Numbers(11);
    for round in 0..6 {
        let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
        let threads: Vec<_> = clients
            .drain(..)
            .map(|mut client| {
                let stop = stop.clone();
                std::thread::spawn(move || {
                    client.count(address, &stop);
                    client
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(100 + random.below(300)));
        if round == 5 {
            stop.store(true, Ordering::Relaxed);
        } else {
            server.kill_and_restart();
        }
        clients.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
    }
    let acknowledged: i64 = clients.iter().map(|client| client.acknowledged).sum();
    assert!(acknowledged > 100, "{acknowledged}");
    let reply = server.connect().ok(doc! { "find": "c" });
    assert_eq!(number(batch(&reply)[0], "views"), acknowledged);
    server.check(&["c"]);
    // What the last one left is flushed without anybody asking.
    let begun = Instant::now();
    loop {
        let raw = server.connect().ok(doc! { "find": "c", "rawData": true });
        if number(batch(&raw)[0], "views") == acknowledged {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{raw:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_was_pending_before_a_kill_is_flushed_after_the_restart() {
    let mut server = Server::start(&[]);
    server.connect().ok(doc! { "create": "c", "patterns": &declaration("1h", true) });
    server.connect().ok(doc! { "insert": "c", "documents": &list([doc! { "_id": 1, "views": 5 }]) });
    let update = doc! { "q": &doc! { "_id": 1 }, "u": &doc! { "$inc": &doc! { "views": 3 } } };
    server.connect().ok(doc! { "update": "c", "updates": &list([update]) });
    server.kill_and_restart();
    let views = |server: &Server, raw: bool| {
        number(batch(&server.connect().ok(doc! { "find": "c", "rawData": raw }))[0], "views")
    };
    assert_eq!((views(&server, false), views(&server, true)), (8, 5));
    let stats = server.connect().ok(doc! { "collStats": "c" });
    assert_eq!(number(stats.as_raw().get_doc("patterns").unwrap(), "pendingIncrements"), 1);
    server.connect().ok(doc! { "runPattern": "c" });
    assert_eq!((views(&server, false), views(&server, true)), (8, 8));
    server.connect().ok(doc! { "collMod": "c", "patterns": &ArrayBuf::new() });
    server.kill_and_restart();
    assert_eq!((views(&server, false), views(&server, true)), (8, 8));
    server.check(&["c"]);
}
