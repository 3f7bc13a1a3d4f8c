//! Clients that mean harm, or are broken: the server stays up, and its memory and threads stay bounded.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use espalier_value::doc;
use espalier_wire::{Header, begin_op_msg, begin_op_query};
use support::{Client, options, serve, serve_with};

fn header(length: i32, op_code: i32) -> [u8; 16] {
    Header { message_length: length, request_id: 1, response_to: 0, op_code }.to_bytes()
}

/// Sends bytes and hangs up on its own side; true if the server hung up without a word.
fn is_refused(server: &espalier_server::Serving, bytes: &[u8]) -> bool {
    let mut stream = TcpStream::connect(server.local_addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may hang up while we write.
    let _ = stream.write_all(bytes);
    let mut rest = Vec::new();
    matches!(stream.read_to_end(&mut rest), Ok(0) | Err(_)) && rest.is_empty()
}

#[test]
fn frames_that_cannot_be_are_refused() {
    let server = serve();
    for length in [i32::MIN, -1, 0, 15, 48_000_001, i32::MAX] {
        assert!(is_refused(&server, &header(length, 2013)), "length {length}");
    }
    for op_code in [0, 1, 2001, 2002, 2006, 2007, 2010, 9999, -1] {
        assert!(is_refused(&server, &header(16, op_code)), "operation code {op_code}");
    }
    assert!(is_refused(&server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert!(is_refused(&server, &[0xff; 4096]));
    Client::connect(server.local_addr()).ok(doc! { "ping": 1 });
}

#[test]
fn garbage_in_a_sound_frame_is_answered_or_refused() {
    let server = serve();
    let mut seed = 0x2545_F491_4F6C_DD1Du64;
    for _ in 0..300 {
        let mut out = Vec::new();
        let mut message = begin_op_msg(&mut out, 1, 0, 0);
        let mut body = doc! { "find": "c", "filter": &doc! { "a": &doc! { "$gt": 1 } }, "$db": "test" }.into_bytes();
        for _ in 0..3 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let at = seed as usize % body.len();
            body[at] = (seed >> 32) as u8;
        }
        message.bytes().extend_from_slice(&body);
        message.finish(48_000_000).unwrap();
        let mut stream = TcpStream::connect(server.local_addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&out).unwrap();
        let mut byte = [0];
        let answered = stream.read(&mut byte);
        assert!(answered.is_ok(), "neither an answer nor an end: {answered:?}");
    }
    Client::connect(server.local_addr()).ok(doc! { "ping": 1 });
}

#[test]
fn half_a_message_costs_nothing() {
    let server = serve();
    let mut held = Vec::new();
    for i in 0..200 {
        let mut stream = TcpStream::connect(server.local_addr()).unwrap();
        let announced = header(47_000_000, 2013);
        let part = if i % 2 == 0 { &announced[..] } else { &announced[..7] };
        stream.write_all(part).unwrap();
        held.push(stream);
    }
    std::thread::sleep(Duration::from_millis(300));
    // Those who announced much wait for their share of the budget or for bytes; others are served.
    Client::connect(server.local_addr()).ok(doc! { "ping": 1 });
    drop(held);
    Client::connect(server.local_addr()).ok(doc! { "ping": 1 });
}

#[test]
fn other_commands_than_hello_are_refused_as_op_query() {
    let server = serve();
    let ask = |command: espalier_value::DocBuf| {
        let mut out = Vec::new();
        let mut message = begin_op_query(&mut out, 1, 0, "admin.$cmd", 0, -1);
        message.bytes().extend_from_slice(command.as_bytes());
        message.finish(1 << 20).unwrap();
        let mut stream = TcpStream::connect(server.local_addr()).unwrap();
        stream.write_all(&out).unwrap();
        let mut body = Vec::new();
        let header = espalier_wire::read_message(&mut stream, &mut body, 1 << 20).unwrap().unwrap();
        assert_eq!(header.op_code, 1);
        format!("{:?}", espalier_value::RawDoc::trusted(&body[20..]))
    };
    assert!(ask(doc! { "ismaster": 1, "helloOk": true }).contains("\"helloOk\": Bool(true)"));
    assert!(ask(doc! { "ping": 1 }).contains("Int32(352)"));
}

#[test]
fn thousands_of_idle_connections_need_few_threads() {
    let server = serve();
    let mut idle = Vec::new();
    for _ in 0..2000 {
        match TcpStream::connect(server.local_addr()) {
            Ok(stream) => idle.push(stream),
            Err(error) => panic!("after {}: {error}", idle.len()),
        }
    }
    let mut client = Client::connect(server.local_addr());
    client.ok(doc! { "ping": 1 });
    // Each of them is woken once and falls asleep again.
    let mut frame = Vec::new();
    let mut message = begin_op_msg(&mut frame, 1, 0, 0);
    message.bytes().extend_from_slice(doc! { "ping": 1, "$db": "test" }.as_bytes());
    message.finish(1 << 20).unwrap();
    for stream in &mut idle {
        stream.write_all(&frame).unwrap();
        let mut answer = [0; 16];
        stream.read_exact(&mut answer).unwrap();
    }
    client.ok(doc! { "ping": 1 });
    std::thread::sleep(Duration::from_secs(6));
    assert!(server.server().threads() < 20, "{} threads", server.server().threads());
    let resident = resident_kib();
    assert!(resident < 400 * 1024, "{resident} KiB");
}

#[test]
fn connections_beyond_the_limit_are_turned_away() {
    let mut options = options();
    options.limits.connections_max = 3;
    let server = serve_with(options);
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(server.local_addr())).collect();
    clients.iter_mut().for_each(|client| drop(client.ok(doc! { "ping": 1 })));
    assert!(Client::connect(server.local_addr()).is_closed());
    drop(clients.pop());
    std::thread::sleep(Duration::from_millis(300));
    Client::connect(server.local_addr()).ok(doc! { "ping": 1 });
}

#[test]
fn few_threads_serve_many_clients_in_turn() {
    let mut options = options();
    options.limits.threads_max = 2;
    let server = serve_with(options);
    let address = server.local_addr();
    let clients: Vec<_> = (0..16)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                for _ in 0..50 {
                    client.ok(doc! { "ping": 1 });
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
}

fn resident_kib() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4
}
