//! Retryable writes and commits behind a proxy that cuts connections: whatever the client sends again, everything
//! happens once.
#![allow(clippy::unwrap_used)]

mod support;

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};
use support::client::{batch, int};
use support::session::check;
use support::{Client, Random, Session, proxy, seconds, serve};

const CLIENTS: i32 = 8;

/// A client that connects again when its connection is cut.
struct Stubborn {
    address: SocketAddr,
    client: Client,
}

impl Stubborn {
    fn new(address: SocketAddr) -> Stubborn {
        Stubborn { address, client: Client::connect(address) }
    }

    /// The reply; `None` if the connection was cut, wherever that was.
    fn once(&mut self, db: &str, command: &DocBuf) -> Option<DocBuf> {
        let mut command = command.clone();
        command.append("$db", db);
        let reply = self.client.try_send(&command).ok().and_then(|()| self.client.try_receive().ok());
        if reply.is_none() {
            let stream = TcpStream::connect(self.address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            stream.set_nodelay(true).unwrap();
            self.client = Client::on(stream);
        }
        reply
    }

    /// Sends the same command until there is an answer.
    fn until_answered(&mut self, db: &str, command: &DocBuf) -> DocBuf {
        loop {
            if let Some(reply) = self.once(db, command) {
                return check(reply).unwrap();
            }
        }
    }
}

fn inc(id: i32) -> DocBuf {
    doc! { "q": &doc! { "_id": id }, "u": &doc! { "$inc": &doc! { "n": 1 } }, "upsert": true }
}

/// What a client did, by its own count.
#[derive(Default)]
struct Counts {
    increments: i32,
    documents: i32,
    transfers: i32,
}

fn work(address: SocketAddr, who: i32, rounds: i32) -> Counts {
    let (mut client, mut session) = (Stubborn::new(address), Session::new());
    let mut random = Random::new(who as u64 + 77);
    let mut counts = Counts::default();
    for round in 0..rounds {
        session.number += 1;
        match random.below(5) {
            0 => {
                let mut updates = ArrayBuf::new();
                updates.push(&inc(who)).push(&inc(1000)).push(&inc(who));
                let reply =
                    client.until_answered("test", &session.retryable(doc! { "update": "c", "updates": &updates }));
                assert_eq!(int(&reply, "n"), 3);
                counts.increments += 3;
            }
            1 => {
                let command = doc! {
                    "findAndModify": "c", "query": &doc! { "_id": who }, "update": &doc! { "$inc": &doc! { "n": 1 } },
                    "upsert": true, "new": true,
                };
                let reply = client.until_answered("test", &session.retryable(command));
                assert!(reply.as_raw().get_doc("value").is_some());
                counts.increments += 1;
            }
            2 => {
                let mut docs = ArrayBuf::new();
                for i in 0..3 {
                    docs.push(&doc! { "who": who, "round": round, "i": i });
                }
                let reply =
                    client.until_answered("test", &session.retryable(doc! { "insert": "d", "documents": &docs }));
                assert_eq!(int(&reply, "n"), 3);
                counts.documents += 3;
            }
            3 => {
                let mut deletes = ArrayBuf::new();
                deletes.push(&doc! { "q": &doc! { "who": who }, "limit": 1 });
                let reply =
                    client.until_answered("test", &session.retryable(doc! { "delete": "d", "deletes": &deletes }));
                counts.documents -= int(&reply, "n");
            }
            _ => {
                transfer(&mut client, &mut session, who);
                counts.transfers += 1;
            }
        }
    }
    counts
}

/// Takes from one and gives to the other. A statement that got no answer is the end of the attempt; a commit that got
/// none is sent again.
fn transfer(client: &mut Stubborn, session: &mut Session, who: i32) {
    'attempt: loop {
        session.number += 1;
        for (at, (id, amount)) in [(who, -1), (who + 100, 1)].into_iter().enumerate() {
            let mut updates = ArrayBuf::new();
            let inc = doc! { "$inc": &doc! { "n": amount } };
            updates.push(&doc! { "q": &doc! { "_id": id }, "u": &inc, "upsert": true });
            let mut command = session.retryable(doc! { "update": "accounts", "updates": &updates });
            command.append("autocommit", false);
            if at == 0 {
                command.append("startTransaction", true);
            }
            match client.once("test", &command).map(check) {
                Some(Ok(_)) => {}
                Some(Err(failed)) => {
                    assert!(failed.is_transient(), "{failed:?}");
                    continue 'attempt;
                }
                None => continue 'attempt,
            }
        }
        let mut commit = session.retryable(doc! { "commitTransaction": 1 });
        commit.append("autocommit", false);
        loop {
            match client.once("admin", &commit).map(check) {
                Some(Ok(_)) => return,
                Some(Err(failed)) => {
                    assert!(failed.is_transient(), "{failed:?}");
                    continue 'attempt;
                }
                None => {}
            }
        }
    }
}

fn sum(client: &mut Client, collection: &str, filter: DocBuf) -> i32 {
    let mut pipeline = ArrayBuf::new();
    pipeline.push(&doc! { "$match": &filter });
    pipeline.push(&doc! { "$group": &doc! { "_id": ValueRef::Null, "n": &doc! { "$sum": "$n" } } });
    let reply = client.ok(doc! { "aggregate": collection, "pipeline": &pipeline, "cursor": &doc! {} });
    match batch(&reply).first().and_then(|doc| doc.get("n")) {
        Some(ValueRef::Int32(n)) => n,
        None => 0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_happens_once_however_often_it_is_cut() {
    let server = serve();
    let (address, cuts) = proxy::start(server.local_addr());
    let rounds = (seconds(1.0) * 250.0) as i32;
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|who| scope.spawn(move || work(address, who, rounds))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold(Counts::default(), |sum, one| Counts {
            increments: sum.increments + one.increments,
            documents: sum.documents + one.documents,
            transfers: sum.transfers + one.transfers,
        })
    });
    let mut client = Client::connect(server.local_addr());
    assert_eq!(sum(&mut client, "c", doc! {}), counts.increments);
    assert_eq!(int(&client.ok(doc! { "count": "d" }), "n"), counts.documents);
    assert_eq!(sum(&mut client, "accounts", doc! {}), 0);
    assert_eq!(sum(&mut client, "accounts", doc! { "_id": &doc! { "$gte": 100 } }), counts.transfers);
    println!("{} cuts", cuts.total());
    assert!(cuts.total() >= 1_000, "{} cuts", cuts.total());
}
