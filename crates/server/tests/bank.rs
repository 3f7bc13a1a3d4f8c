//! Money moves between accounts in transactions of many clients while others add everything up: the total is the same at
//! every snapshot.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};
use support::client::batch;
use support::session::Failed;
use support::{Client, Session, seconds, serve};

const ACCOUNTS: u64 = 12;
const CLIENTS: u64 = 32;
const EACH: i32 = 100;

fn update(id: i32, amount: i32) -> DocBuf {
    let mut updates = ArrayBuf::new();
    updates.push(&doc! { "q": &doc! { "_id": id }, "u": &doc! { "$inc": &doc! { "n": amount } } });
    doc! { "update": if id % 2 == 0 { "even" } else { "odd" }, "updates": &updates }
}

fn balance(session: &mut Session, client: &mut Client, id: i32) -> Result<i32, Failed> {
    let collection = if id % 2 == 0 { "even" } else { "odd" };
    let reply = session.run(client, "test", doc! { "find": collection, "filter": &doc! { "_id": id } })?;
    match batch(&reply)[0].get("n") {
        Some(ValueRef::Int32(n)) => Ok(n),
        other => panic!("{other:?}"),
    }
}

fn total(session: &mut Session, client: &mut Client) -> Result<i64, Failed> {
    let mut sum = 0;
    for collection in ["even", "odd"] {
        let reply = session.run(client, "test", doc! { "find": collection })?;
        for doc in batch(&reply) {
            match doc.get("n") {
                Some(ValueRef::Int32(n)) => sum += i64::from(n),
                other => panic!("{other:?}"),
            }
        }
    }
    Ok(sum)
}

#[test]
fn the_total_is_the_same_at_every_snapshot() {
    let server = serve();
    let address = server.local_addr();
    let mut client = Client::connect(address);
    for id in 0..ACCOUNTS as i32 {
        let mut docs = ArrayBuf::new();
        docs.push(&doc! { "_id": id, "n": EACH });
        client.ok(doc! { "insert": if id % 2 == 0 { "even" } else { "odd" }, "documents": &docs });
    }
    let expected = ACCOUNTS as i64 * i64::from(EACH);
    let stop = AtomicBool::new(false);
    let (transfers, looks) = (AtomicU64::new(0), AtomicU64::new(0));
    let ends = Instant::now() + Duration::from_secs_f64(seconds(2.0));
    std::thread::scope(|scope| {
        for who in 0..CLIENTS {
            let (stop, transfers) = (&stop, &transfers);
            scope.spawn(move || {
                let (mut client, mut session) = (Client::connect(address), Session::new());
                let mut random = support::Random::new(who + 1);
                while !stop.load(Ordering::Relaxed) {
                    let (from, to) = (random.below(ACCOUNTS) as i32, random.below(ACCOUNTS) as i32);
                    let amount = 1 + random.below(20) as i32;
                    if from == to {
                        continue;
                    }
                    session.transact(&mut client, |session, client| {
                        if balance(session, client, from)? < amount {
                            return Ok(());
                        }
                        session.run(client, "test", update(from, -amount))?;
                        session.run(client, "test", update(to, amount)).map(drop)
                    });
                    transfers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..2 {
            let (stop, looks) = (&stop, &looks);
            scope.spawn(move || {
                let (mut client, mut session) = (Client::connect(address), Session::new());
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(session.transact(&mut client, total), expected);
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while Instant::now() < ends {
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let mut session = Session::new();
    assert_eq!(session.transact(&mut client, total), expected);
    let (transfers, looks) = (transfers.load(Ordering::Relaxed), looks.load(Ordering::Relaxed));
    println!("{transfers} transfers, {looks} totals");
    assert!(transfers > 50 && looks > 5, "{transfers} transfers, {looks} totals");
}
