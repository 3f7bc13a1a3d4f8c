//! Many active connections share a few threads; nobody notices, whatever one of them does.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use espalier_server::Serving;
use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};
use espalier_wire::{MAX_MESSAGE_BYTES, begin_op_msg};
use support::client::{batch, int};
use support::{Client, Session, options, serve, serve_with};

/// What the others do meanwhile.
#[derive(Default)]
struct Others {
    over: AtomicBool,
    answered: AtomicU64,
    /// The longest that one of them waited, in microseconds, since it was last asked.
    longest: AtomicU64,
}

fn ping(client: &mut Client, others: &Others) {
    let since = Instant::now();
    client.ok(doc! { "ping": 1 });
    others.longest.fetch_max(since.elapsed().as_micros() as u64, Ordering::Relaxed);
    others.answered.fetch_add(1, Ordering::Relaxed);
}

/// Runs `test` with a connection that shares its thread with others, who never stop.
fn in_a_crowd(serving: &Serving, test: impl FnOnce(&mut Client, &Others) + Send) {
    let address: SocketAddr = serving.local_addr();
    let others = Others::default();
    // More than a few for each processor.
    let count = 4 * thread::available_parallelism().unwrap().get() + 16;
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                let mut client = Client::connect(address);
                while !others.over.load(Ordering::Relaxed) {
                    ping(&mut client, &others);
                }
            });
        }
        let mut client = Client::connect(address);
        let outcome = thread::scope(|scope| {
            let tested = scope.spawn(|| {
                join(serving, &mut client, count + 1);
                test(&mut client, &others);
            });
            tested.join()
        });
        others.over.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}

/// Goes on until everybody shares threads, this client too.
fn join(serving: &Serving, client: &mut Client, count: usize) {
    let since = Instant::now();
    while serving.server().grouped() < count {
        client.ok(doc! { "ping": 1 });
        assert!(since.elapsed() < Duration::from_secs(30), "{} of {count} in groups", serving.server().grouped());
    }
}

fn message(body: &DocBuf) -> Vec<u8> {
    let mut out = Vec::new();
    let mut message = begin_op_msg(&mut out, 7, 0, 0);
    message.bytes().extend_from_slice(body.as_bytes());
    message.finish(MAX_MESSAGE_BYTES).unwrap();
    out
}

#[test]
fn others_go_on_while_one_waits() {
    let serving = serve();
    in_a_crowd(&serving, |client, others| {
        let block = doc! { "failCommands": &["count"].into_iter().map(ValueRef::String).collect::<ArrayBuf>(), "blockConnection": true, "blockTimeMS": 1_500 };
        let mode = doc! { "times": 1 };
        let on = client.run_on("admin", doc! { "configureFailPoint": "failCommand", "mode": &mode, "data": &block });
        assert!(matches!(on.as_raw().get("ok"), Some(ValueRef::Double(1.0))), "{on:?}");
        others.longest.store(0, Ordering::Relaxed);
        let (before, since) = (others.answered.load(Ordering::Relaxed), Instant::now());
        client.ok(doc! { "count": "c" });
        assert!(since.elapsed() >= Duration::from_millis(1_500));
        let answered = others.answered.load(Ordering::Relaxed) - before;
        let longest = Duration::from_micros(others.longest.load(Ordering::Relaxed));
        assert!(longest < Duration::from_millis(1_000), "somebody waited for {longest:?}");
        assert!(answered > 100, "{answered}");
        // It has a thread of its own now, and goes on.
        client.ok(doc! { "ping": 1 });
    });
}

#[test]
fn one_who_waits_for_another_gets_what_it_waits_for() {
    let serving = serve();
    Client::connect(serving.local_addr()).ok(doc! { "create": "c" });
    in_a_crowd(&serving, |client, _| {
        // Both may well be in one group: the update waits for the transaction, whose end comes behind it.
        let mut second = Client::connect(serving.local_addr());
        (0..200).for_each(|_| drop(second.ok(doc! { "ping": 1 })));
        let mut session = Session::new();
        session.start();
        let one = doc! { "_id": 1 };
        let docs: ArrayBuf = [ValueRef::Document(one.as_raw())].into_iter().collect();
        assert!(session.run(&mut second, "test", doc! { "insert": "c", "documents": &docs }).is_ok());
        thread::scope(|scope| {
            let waits = scope.spawn(|| client.run(doc! { "insert": "c", "documents": &docs }));
            thread::sleep(Duration::from_millis(50));
            assert!(session.commit(&mut second).is_ok());
            let reply = waits.join().unwrap();
            assert_eq!(int(&reply, "n"), 0, "{reply:?}");
        });
    });
}

#[test]
fn requests_come_in_parts_together_and_large() {
    let serving = serve();
    in_a_crowd(&serving, |client, _| {
        let ping = message(&doc! { "ping": 1, "$db": "test" });
        // Three at once.
        client.stream.write_all(&ping.repeat(3)).unwrap();
        (0..3).for_each(|_| assert!(matches!(client.receive().2.as_raw().get("ok"), Some(ValueRef::Double(1.0)))));
        // One and a half, and then the rest, byte by byte.
        let (half, rest) = ping.split_at(ping.len() / 2);
        client.stream.write_all(&[&ping, half].concat()).unwrap();
        client.receive();
        for byte in rest {
            client.stream.write_all(&[*byte]).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        client.receive();
        let text = "x".repeat(300_000);
        let large = doc! { "_id": 1, "text": text.as_str() };
        let docs: ArrayBuf = [ValueRef::Document(large.as_raw())].into_iter().collect();
        assert_eq!(int(&client.ok(doc! { "insert": "large", "documents": &docs }), "n"), 1);
        let found = client.ok(doc! { "find": "large" });
        assert_eq!(batch(&found)[0].get_str("text"), Some(text.as_str()));
    });
}

#[test]
fn nothing_is_left_of_a_crowd() {
    let serving = serve();
    in_a_crowd(&serving, |client, others| {
        others.over.store(true, Ordering::Relaxed);
        // The others hang up or fall silent; this one goes on by itself.
        let since = Instant::now();
        while serving.server().grouped() > 0 {
            client.ok(doc! { "ping": 1 });
            assert!(since.elapsed() < Duration::from_secs(30), "{} in groups", serving.server().grouped());
        }
        thread::sleep(Duration::from_millis(300));
        client.ok(doc! { "ping": 1 });
    });
}

#[test]
fn a_server_stops_in_the_middle_of_a_crowd() {
    let serving = serve();
    let address = serving.local_addr();
    let count = 4 * thread::available_parallelism().unwrap().get() + 16;
    thread::scope(|scope| {
        let clients: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = Client::connect(address);
                    let ping = doc! { "ping": 1, "$db": "test" };
                    while client.try_send(&ping).and_then(|()| client.try_receive()).is_ok() {}
                })
            })
            .collect();
        let since = Instant::now();
        while serving.server().grouped() < count {
            assert!(since.elapsed() < Duration::from_secs(30));
            thread::sleep(Duration::from_millis(5));
        }
        let since = Instant::now();
        serving.stop().unwrap();
        assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
        // Each was hung up on.
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
}

/// Whoever waits for the disk gives its group to another thread, which is not to be one too many.
#[test]
fn a_crowd_keeps_to_the_limit_of_threads() {
    let mut limited = options();
    limited.limits.threads_max = 4;
    let serving = serve_with(limited);
    let processors = thread::available_parallelism().unwrap().get();
    let (over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 * processors + 32 {
            scope.spawn(|| {
                let mut client = Client::connect(serving.local_addr());
                let empty = DocBuf::new();
                let docs: ArrayBuf = [ValueRef::Document(empty.as_raw())].into_iter().collect();
                while !over.load(Ordering::Relaxed) {
                    (0..40).for_each(|_| drop(client.ok(doc! { "ping": 1 })));
                    assert_eq!(int(&client.ok(doc! { "insert": "c", "documents": &docs }), "n"), 1);
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let until = Instant::now() + Duration::from_secs(2);
        let mut most = 0;
        while Instant::now() < until {
            most = most.max(serving.server().threads());
            thread::sleep(Duration::from_millis(1));
        }
        over.store(true, Ordering::Relaxed);
        assert!(most <= 4 + processors, "{most} threads");
    });
    assert!(written.load(Ordering::Relaxed) > 100);
}
