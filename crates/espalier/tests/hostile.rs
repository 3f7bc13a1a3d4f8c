//! Thousands of idle clients, and clients that mean harm, beside one that wants to be served: its answers stay quick and
//! the process stays small.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use espalier_value::{DocBuf, doc};
use espalier_wire::{Compression, Compressor, Header, begin_op_msg};
use support::{Client, Longest, Server, cursor_id, error_code, list};

/// A complete message around these bytes, whatever they are.
fn message(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut message = begin_op_msg(&mut out, 1, 0, 0);
    message.bytes().extend_from_slice(body);
    message.finish(48_000_000).unwrap();
    out
}

fn header(length: i32, op_code: i32) -> [u8; 16] {
    Header { message_length: length, request_id: 1, response_to: 0, op_code }.to_bytes()
}

/// Somebody who only wants to be served, until told to stop; the longest that an answer took.
fn bystander(address: SocketAddr, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<Duration> {
    std::thread::spawn(move || {
        let mut client = Client::connect(address);
        let mut longest = Longest::default();
        let mut next = 0i64;
        while !stop.load(Ordering::Relaxed) {
            next += 1;
            longest.time(|| {
                client.ok(doc! { "ping": 1 });
                client.ok(doc! { "insert": "mine", "documents": &list([doc! { "_id": next }]) });
                client.ok(doc! { "find": "mine", "filter": &doc! { "_id": next } });
            });
        }
        longest.0
    })
}

#[test]
fn thousands_of_idle_connections_cost_little() {
    const CONNECTIONS: u64 = 3_000;
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.ok(doc! { "ping": 1 });
    let before = server.memory_kib("VmRSS");
    let ping = message(doc! { "ping": 1, "$db": "test" }.as_bytes());
    let idle: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(&ping).unwrap();
            stream.read_exact(&mut [0; 16]).unwrap();
            stream
        })
        .collect();
    let mut longest = Longest::default();
    for _ in 0..200 {
        longest.time(|| client.ok(doc! { "ping": 1 }));
    }
    assert!(longest.0 < Duration::from_secs(1), "a ping took {:?}", longest.0);
    // The threads that served them end after a while, and what they used goes back to the system.
    let begun = Instant::now();
    loop {
        let grown = server.memory_kib("VmRSS").saturating_sub(before);
        // Measured 35 KiB each in a release build, 46 KiB without optimisation.
        if grown < CONNECTIONS * 64 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{grown} KiB for {CONNECTIONS} connections");
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(idle);
    client.ok(doc! { "ping": 1 });
}

#[test]
fn clients_that_mean_harm_harm_nobody_else() {
    let limits = ["--max-in-flight-bytes", "134217728", "--max-cursors", "500"];
    let server = Server::start(&limits);
    let address = server.address();
    let stop = Arc::new(AtomicBool::new(false));
    let bystander = bystander(address, Arc::clone(&stop));
    let begun = Instant::now();
    let mut held = half_frames(address);
    let attacks: [fn(SocketAddr); 5] = [giant_lengths, bombs, deep_nesting, giant_batches, many_cursors];
    let threads: Vec<_> = attacks.into_iter().map(|attack| std::thread::spawn(move || attack(address))).collect();
    // A byte at a time, for as long as the others take.
    while threads.iter().any(|thread| !thread.is_finished()) || begun.elapsed() < Duration::from_secs(2) {
        held.iter_mut().for_each(|stream| drop(stream.write_all(&[0])));
        std::thread::sleep(Duration::from_millis(50));
    }
    for thread in threads {
        thread.join().unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let longest = bystander.join().unwrap();
    assert!(longest < Duration::from_secs(3), "a client beside them waited {longest:?}");
    let most = server.memory_kib("VmHWM");
    assert!(most < 700 * 1024, "{most} KiB");
    drop(held);
    server.check(&["mine"]);
}

/// Connections that begin a frame and never end it.
fn half_frames(address: SocketAddr) -> Vec<TcpStream> {
    (0..300)
        .map(|number| {
            let mut stream = TcpStream::connect(address).unwrap();
            let announced = header([60, 4_000, 60_000][number % 3], 2013);
            stream.write_all(&announced[..1 + number % 16]).unwrap();
            stream
        })
        .collect()
}

/// Lengths and operations that cannot be: the server hangs up.
fn giant_lengths(address: SocketAddr) {
    for _ in 0..20 {
        for (length, op_code) in
            [(i32::MAX, 2013), (-1, 2013), (0, 2013), (48_000_001, 2013), (16, 9999), (16, 2004), (40, 2012)]
        {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            // It may hang up while we write.
            let _ = stream.write_all(&header(length, op_code)).and_then(|()| stream.write_all(&[0xff; 24]));
            let mut rest = Vec::new();
            assert!(!matches!(stream.read_to_end(&mut rest), Ok(1..)), "answered {length} {op_code}");
        }
    }
}

/// A little that unpacks into a lot, and a little that says so and does not.
fn bombs(address: SocketAddr) {
    let large = message(doc! { "ping": "x".repeat(40_000_000).as_str(), "$db": "test" }.as_bytes());
    for compression in [Compression::Snappy, Compression::Zlib, Compression::Zstd] {
        let mut packed = Vec::new();
        assert!(Compressor::new().compress(compression, &large, &mut packed));
        for _ in 0..4 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream.write_all(&packed).unwrap();
            stream.read_exact(&mut [0; 16]).unwrap();
        }
        // The size that it unpacks to is bytes 20 to 24.
        for size in [u32::MAX, 1 << 30, 48_000_001, 47_000_000, 10, 0] {
            let mut lying = packed.clone();
            lying[20..24].copy_from_slice(&size.to_le_bytes());
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let _ = stream.write_all(&lying);
            let mut rest = Vec::new();
            let answered = stream.read_to_end(&mut rest);
            assert!(rest.is_empty(), "{compression:?} said {size} and got {answered:?}");
        }
    }
}

fn deep_nesting(address: SocketAddr) {
    let mut client = Client::connect(address);
    for depth in [181, 500, 100_000] {
        // Each level is `{a: …}`: length, type, name, content, end.
        let mut bytes: Vec<u8> = Vec::new();
        let total = 5 + depth * 8;
        for level in 0..depth {
            bytes.extend_from_slice(&((total - level * 8) as i32).to_le_bytes());
            bytes.extend_from_slice(&[3, b'a', 0]);
        }
        bytes.extend_from_slice(&5i32.to_le_bytes());
        bytes.extend(std::iter::repeat_n(0, depth + 1));
        let nested = DocBuf::from_bytes(bytes).unwrap();
        let reply = client.run(doc! { "insert": "deep", "documents": &list([nested]) });
        assert!(error_code(&reply).is_some(), "{depth} levels were taken");
    }
    let mut filter = doc! { "a": 1 };
    for _ in 0..90 {
        filter = doc! { "$and": &list([filter.clone()]) };
    }
    // Deep but allowed, or refused: either way answered.
    client.run(doc! { "find": "deep", "filter": &filter });
    client.ok(doc! { "ping": 1 });
}

fn giant_batches(address: SocketAddr) {
    let mut client = Client::connect(address);
    for count in [25_001, 200_000] {
        let updates =
            list((0..count).map(|n| doc! { "q": &doc! { "_id": n }, "u": &doc! { "$inc": &doc! { "n": 1 } } }));
        assert_eq!(client.code(doc! { "update": "giant", "updates": &updates }), 16, "InvalidLength");
        let stages = list((0..count).map(|_| doc! { "$skip": 1 }));
        let reply = client.run(doc! { "aggregate": "giant", "pipeline": &stages, "cursor": &DocBuf::new() });
        assert!(error_code(&reply).is_some(), "{count} stages were taken");
    }
    let either = list((0..100_000).map(|n| doc! { "a": n }));
    client.run(doc! { "find": "giant", "filter": &doc! { "$or": &either } });
    client.ok(doc! { "ping": 1 });
}

/// Cursors beyond the limit are refused, and those that are there can still be used.
fn many_cursors(address: SocketAddr) {
    let mut client = Client::connect(address);
    client.ok(doc! { "insert": "cursors", "documents": &list((0..10).map(|id| doc! { "_id": id })) });
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..2_000 {
        let reply = client.run(doc! { "find": "cursors", "batchSize": 1 });
        match error_code(&reply) {
            None => open.push(cursor_id(&reply)),
            Some(_) => refused += 1,
        }
    }
    assert!(open.len() <= 500 && refused >= 1_500, "{} open, {refused} refused", open.len());
    for id in open {
        client.ok(doc! { "getMore": id, "collection": "cursors" });
    }
}
