//! Orders: customers change and read them while two jobs archive them.

use bson::{DateTime, doc};

use super::{CLIENTS, Counts, DB, Race, together};
use crate::client::Client;
use crate::crash::read_all;
use crate::error::Result;
use crate::random::Random;
use crate::seeds::archive::{ARCHIVE, ORDERS, archive_old_orders, get_order};
use crate::seeds::as_number;

pub static RACE: Race = Race {
    name: "archive",
    what: "1,500 old orders: 14 clients each change and read 150 of them while 2 jobs archive",
    by_hand,
    declared: Some(declared),
};

const ORDERS_COUNT: i32 = 1_500;
const EDITS: usize = 150;
/// Of the clients, this many are archive jobs.
const JOBS: usize = 2;
const RUNS: usize = 4;

fn load(client: &mut Client) -> Result<()> {
    let order = |id| doc! { "_id": id, "orderDate": DateTime::from_millis(0), "status": "delivered", "refunds": 0 };
    let orders: Vec<_> = (0..ORDERS_COUNT).map(order).collect();
    client.must(DB, &doc! { "insert": ORDERS, "documents": orders }).map(drop)
}

/// What one client saw: refunds acknowledged, refunds that met no order, reads that found none, job runs that failed.
type Seen = [u64; 4];

fn race(
    port: u16,
    job: impl Fn(&mut Client) -> Result<()> + Sync,
    read: impl Fn(&mut Client, i32) -> Result<bool> + Sync,
) -> Result<Counts> {
    let seen: Vec<Seen> = together(port, CLIENTS, |client, number| {
        let mut seen = Seen::default();
        if number < JOBS {
            for _ in 0..RUNS {
                seen[3] += u64::from(job(client).is_err());
            }
            return Ok(seen);
        }
        let mut random = Random::part(1, number as u64);
        for _ in 0..EDITS {
            let id = random.below(ORDERS_COUNT as u64) as i32;
            let refund = doc! { "q": { "_id": id }, "u": { "$inc": { "refunds": 1 } } };
            let reply = client.must(DB, &doc! { "update": ORDERS, "updates": [refund] })?;
            seen[usize::from(as_number(reply.get("n")) == 0)] += 1;
            seen[2] += u64::from(!read(client, random.below(ORDERS_COUNT as u64) as i32)?);
        }
        Ok(seen)
    })?;
    let total = |at: usize| seen.iter().map(|seen| seen[at]).sum::<u64>();
    let mut client = Client::connect(port)?;
    let (mut refunds, mut ids) = (0, Vec::new());
    for collection in [ORDERS, ARCHIVE] {
        let find = doc! { "find": collection, "rawData": true };
        // The reference does not know the field, and has nothing but stored documents.
        let find = if client.run(DB, &find)?.get_f64("ok").is_ok_and(|ok| ok == 1.0) {
            find
        } else {
            doc! { "find": collection }
        };
        for order in read_all(&mut client, DB, &find)? {
            refunds += as_number(order.get("refunds")) as u64;
            ids.push(as_number(order.get("_id")));
        }
    }
    let stored = ids.len();
    ids.sort_unstable();
    ids.dedup();
    Ok(vec![
        ("refunds lost", total(0).saturating_sub(refunds)),
        ("refunds that met no order", total(1)),
        ("orders in both", (stored - ids.len()) as u64),
        ("orders gone", ORDERS_COUNT as u64 - ids.len() as u64),
        ("reads that found none", total(2)),
        ("job runs failed", total(3)),
    ])
}

fn by_hand(port: u16) -> Result<Counts> {
    load(&mut Client::connect(port)?)?;
    race(port, |client| archive_old_orders(client, DB).map(drop), |client, id| Ok(get_order(client, DB, id)?.is_some()))
}

fn declared(port: u16) -> Result<Counts> {
    let mut client = Client::connect(port)?;
    let when = doc! {
        "orderDate": { "$lt": "$$NOW - 90d" }, "status": { "$in": ["delivered", "cancelled", "refunded"] },
    };
    let stamp = doc! { "archivedAt": "$$NOW", "archiveReason": "age_based" };
    let archive = doc! { "when": when, "into": ARCHIVE, "stamp": stamp };
    client.must(DB, &doc! { "create": ORDERS, "patterns": [{ "archive": archive }] })?;
    load(&mut client)?;
    race(
        port,
        |client| client.must(DB, &doc! { "runPattern": ORDERS }).map(drop),
        |client, id| Ok(!read_all(client, DB, &doc! { "find": ORDERS, "filter": { "_id": id } })?.is_empty()),
    )
}
