//! Archiving 25,000 orders, and reading others meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bson::{DateTime, Document, doc};

use super::{Both, CONNECTIONS, DB, Rate, bound, drive, verdict};
use crate::client::Client;
use crate::error::{Result, err};
use crate::process::Killable;
use crate::random::Random;
use crate::seeds::archive::{ARCHIVE, ORDERS, archive_old_orders};
use crate::seeds::as_number;

const OLD: i32 = 25_000;
const NEW: i32 = 25_000;
const ROUNDS: usize = 3;

fn load(client: &mut Client) -> Result<()> {
    let now = DateTime::now();
    let order = |id: i32| {
        let date = if id < OLD { DateTime::from_millis(1_600_000_000_000 + i64::from(id)) } else { now };
        doc! {
            "_id": id, "orderDate": date, "status": "delivered", "customer": format!("customer {id}"),
            "items": [{ "sku": "BK-M100S-44", "quantity": 1, "price": 3399.99 }], "total": 3399.99,
        }
    };
    for first in (0..OLD + NEW).step_by(5_000) {
        let orders: Vec<Document> = (first..first + 5_000).map(order).collect();
        client.must(DB, &doc! { "insert": ORDERS, "documents": orders })?;
    }
    let index = doc! { "key": { "orderDate": 1 }, "name": "orderDate_1" };
    client.must(DB, &doc! { "createIndexes": ORDERS, "indexes": [index] }).map(drop)
}

fn declare(server: &dyn Killable) -> Result<Client> {
    let mut client = server.connect()?;
    client.run(DB, &doc! { "drop": ORDERS })?;
    let when = doc! {
        "orderDate": { "$lt": "$$NOW - 90d" }, "status": { "$in": ["delivered", "cancelled", "refunded"] },
    };
    let stamp = doc! { "archivedAt": "$$NOW", "archiveReason": "age_based" };
    let archive = doc! { "when": when, "into": ARCHIVE, "stamp": stamp, "every": "24h" };
    client.must(DB, &doc! { "create": ORDERS, "patterns": [{ "archive": archive }] })?;
    load(&mut client)?;
    Ok(client)
}

fn by_hand(server: &dyn Killable) -> Result<Duration> {
    let mut client = server.connect()?;
    client.run(DB, &doc! { "drop": ORDERS })?;
    client.run(DB, &doc! { "drop": ARCHIVE })?;
    load(&mut client)?;
    let begun = Instant::now();
    let moved = archive_old_orders(&mut client, DB)?;
    if moved == OLD as usize { Ok(begun.elapsed()) } else { Err(err!("{moved} orders were archived")) }
}

fn declared(client: &mut Client) -> Result<Duration> {
    let begun = Instant::now();
    let reply = client.must(DB, &doc! { "runPattern": ORDERS })?;
    let moved = as_number(reply.get("moved"));
    if moved == i64::from(OLD) { Ok(begun.elapsed()) } else { Err(err!("{reply}")) }
}

pub fn run(both: &Both<'_>) -> Result<()> {
    let row = "archive";
    let (mut own, mut hand) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push(declared(&mut declare(both.espalier)?)?);
        hand.push(by_hand(both.mongod)?);
    }
    own.sort_unstable();
    hand.sort_unstable();
    let (own, hand) = (own[ROUNDS / 2], hand[ROUNDS / 2]);
    println!("{row:<16} {OLD} orders: espalier, declared {own:.2?}; mongod, by hand {hand:.2?}");
    verdict(row, "declared / by hand on mongod", hand.as_secs_f64() / own.as_secs_f64(), 3.0);

    let mut client = declare(both.espalier)?;
    let read = |client: &mut Client, number: u64| {
        let id = OLD + Random::new(number).below(NEW as u64) as i32;
        let reply = client.must(DB, &doc! { "find": ORDERS, "filter": { "_id": id } })?;
        if reply.get_document("cursor")?.get_array("firstBatch")?.len() == 1 { Ok(()) } else { Err(err!("{reply}")) }
    };
    let idle = super::drive_for(both.espalier, CONNECTIONS, both.duration, read)?;
    let over = AtomicBool::new(false);
    let (took, busy): (Result<Duration>, Result<Rate>) = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let took = declared(&mut client);
            over.store(true, Ordering::Relaxed);
            took
        });
        let busy = drive(both.espalier, CONNECTIONS, |_| over.load(Ordering::Relaxed), read);
        (run.join().unwrap_or_else(|_| Err(err!("the run panicked"))), busy)
    });
    let (took, busy) = (took?, busy?);
    println!("{row:<16} point reads: idle {idle}; while archiving, which took {took:.2?}, {busy}");
    bound(row, "p99 of point reads, archiving / idle", busy.at(0.99).as_secs_f64() / idle.at(0.99).as_secs_f64(), 2.0);
    Ok(())
}
