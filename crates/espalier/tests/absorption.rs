//! Collections of sixteen clients are taken into the pattern `shared` and folded back while the clients write, and the server
//! is killed in the middle, again and again: nothing that was acknowledged is lost, doubled or in two places.
#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use espalier_value::{DocBuf, ValueRef, doc};
use support::{Client, Numbers, Server, batch, cursor_id, error_code, list, number, together};

const CLIENTS: usize = 16;
const ROUNDS: u64 = 4;
/// Documents of each client that nobody writes, so that taking it in takes its time.
const STILL: i64 = 60;

fn name(me: usize) -> String {
    format!("customer_{me}_orders")
}

/// What a client knows of its documents: how often each was counted up, by its number; the last may be one more.
#[derive(Clone, Default)]
struct Known {
    counts: Vec<i64>,
    /// The document that was written when the server went, and what it may be then.
    flying: Option<(usize, i64)>,
}

fn send(client: &mut Client, mut command: DocBuf) -> Option<DocBuf> {
    command.append("$db", "test");
    client.try_send(&command).ok()?;
    client.try_receive().ok()
}

/// Writes until the server is gone.
fn write(address: SocketAddr, me: usize, mut known: Known) -> Known {
    let mut client = Client::connect(address);
    let mut numbers = Numbers(me as u64 + known.counts.len() as u64);
    loop {
        let at = numbers.below(known.counts.len() as u64 + 3) as usize;
        let (at, command, field) = match known.counts.get(at) {
            Some(_) => {
                let update = doc! { "q": &doc! { "_id": at as i64 }, "u": &doc! { "$inc": &doc! { "n": 1i64 } } };
                (at, doc! { "update": name(me).as_str(), "updates": &list([update]) }, "nModified")
            }
            None => {
                let at = known.counts.len();
                let doc = doc! { "_id": at as i64, "number": at as i64, "n": 1i64 };
                (at, doc! { "insert": name(me).as_str(), "documents": &list([doc]) }, "n")
            }
        };
        let will_be = known.counts.get(at).map_or(1, |n| n + 1);
        known.flying = Some((at, will_be));
        let Some(reply) = send(&mut client, command) else { return known };
        if error_code(&reply) == Some(91) || error_code(&reply) == Some(11600) {
            return known;
        }
        assert_eq!((error_code(&reply), number(reply.as_raw(), field)), (None, 1), "{reply:?}");
        known.flying = None;
        match known.counts.get_mut(at) {
            Some(n) => *n = will_be,
            None => known.counts.push(will_be),
        }
    }
}

fn all(client: &mut Client, mut find: DocBuf, collection: &str) -> Vec<DocBuf> {
    find.append("batchSize", 50_000);
    let mut reply = client.ok(find);
    let mut docs = Vec::new();
    loop {
        docs.extend(batch(&reply).into_iter().map(DocBuf::from_raw));
        match cursor_id(&reply) {
            0 => return docs,
            id => reply = client.ok(doc! { "getMore": id, "collection": collection }),
        }
    }
}

/// The collections that there are, and whether one of them is on its way.
fn stored(client: &mut Client) -> (Vec<String>, bool) {
    let listed = client.ok(doc! { "listCollections": 1, "rawData": true });
    let moving = batch(&listed).iter().any(|info| info.get_doc("options").unwrap().elem("patternJob").is_some());
    (batch(&listed).iter().map(|info| info.get_str("name").unwrap().to_string()).collect(), moving)
}

fn check(client: &mut Client, known: &mut [Known]) {
    let (real, moving) = stored(client);
    for (me, known) in known.iter_mut().enumerate() {
        let name = name(me);
        let docs = all(client, doc! { "find": name.as_str() }, &name);
        let mut counts = vec![0; docs.len() - STILL as usize];
        for doc in docs.iter().filter(|doc| number(doc.as_raw(), "_id") >= 0) {
            let at = number(doc.as_raw(), "_id") as usize;
            assert_eq!(counts[at], 0, "{name}: {at} is there twice");
            assert_eq!(number(doc.as_raw(), "number"), at as i64);
            let tenant = doc.as_raw().get_str("t");
            assert!(tenant.is_none_or(|tenant| tenant == me.to_string()), "{doc:?}");
            counts[at] = number(doc.as_raw(), "n");
        }
        if counts != known.counts {
            let (at, will_be) = known.flying.unwrap();
            match known.counts.get_mut(at) {
                Some(n) => *n = will_be,
                None => known.counts.push(will_be),
            }
            assert_eq!(counts, known.counts, "{name}, with {at} under way");
        }
        known.flying = None;
        if moving {
            continue;
        }
        // In one place: here, or in the one collection for all.
        let filter = doc! { "t": me.to_string().as_str() };
        let there = all(client, doc! { "find": "orders", "filter": &filter, "rawData": true }, "orders").len();
        let expected = if real.contains(&name) { 0 } else { docs.len() };
        assert_eq!(there, expected, "{name} is in two places");
    }
}

fn declare(on: bool) -> DocBuf {
    let shared = doc! { "shared": &doc! { "discriminator": "t", "name": "customer_{t}_orders" } };
    let patterns = if on { list([shared]) } else { list([]) };
    doc! { "collMod": "orders", "patterns": &patterns }
}

/// Takes the collections in and folds them back until the server is gone.
fn migrate(address: SocketAddr, mut on: bool) -> (bool, u64) {
    let mut client = Client::connect(address);
    let mut done = 0;
    loop {
        let Some(reply) = send(&mut client, declare(on)) else { return (on, done) };
        match error_code(&reply) {
            None => {
                on = !on;
                done += 1;
            }
            Some(91 | 11600) => return (on, done),
            // What the kill cut off is still going on.
            Some(115 | 117) => {}
            _ => panic!("{reply:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_lost_while_collections_are_taken_in_and_folded_back_and_the_server_is_killed() {
    let mut server = Server::start(&[]);
    let mut client = server.connect();
    for me in 0..CLIENTS {
        let still = |id: i64| doc! { "_id": -1 - id, "number": -1 - id };
        client.ok(doc! { "insert": name(me).as_str(), "documents": &list((0..STILL).map(still)) });
        let index = doc! { "key": &doc! { "number": 1 }, "name": "number_1", "unique": true };
        client.ok(doc! { "createIndexes": name(me).as_str(), "indexes": &list([index]) });
    }
    client.ok(doc! { "create": "orders" });
    drop(client);
    let mut known = vec![Known::default(); CLIENTS];
    let (mut on, mut done, mut resumed) = (true, 0, 0);
    for round in 0..ROUNDS {
        let address = server.address();
        let migrator = std::thread::spawn(move || migrate(address, on));
        let before = known.clone();
        let writers = std::thread::spawn(move || together(CLIENTS, move |me| write(address, me, before[me].clone())));
        std::thread::sleep(Duration::from_millis(700 + 400 * round));
        server.kill_and_restart();
        known = writers.join().unwrap();
        let (next, more) = migrator.join().unwrap();
        (on, done) = (next, done + more);
        let mut client = server.connect();
        resumed += u64::from(stored(&mut client).1);
        check(&mut client, &mut known);
    }
    assert!(resumed > 0, "no kill hit a migration, {done} were carried out");
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut client = server.connect();
    while stored(&mut client).1 {
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    check(&mut client, &mut known);
    // Whatever was cut off can be asked for again.
    for on in [true, false] {
        client.ok(declare(on));
        check(&mut client, &mut known);
        let (real, _) = stored(&mut client);
        assert_eq!(real.len(), if on { 1 } else { CLIENTS + 1 }, "{real:?}");
    }
    assert!(known.iter().all(|known| !known.counts.is_empty()));
    let names: Vec<String> = (0..CLIENTS).map(name).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push("orders");
    server.check(&names);
    assert!(matches!(client.ok(doc! { "ping": 1 }).as_raw().get("ok"), Some(ValueRef::Double(_))));
}
