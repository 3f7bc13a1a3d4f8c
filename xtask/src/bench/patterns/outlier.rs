//! Appending to and paging in an array of 100,000 elements.

use bson::oid::ObjectId;
use bson::{Bson, Document, doc};

use super::{Both, CONNECTIONS, DB, bound, drive, drive_for, verdict};
use crate::client::Client;
use crate::error::{Result, err};
use crate::process::Killable;
use crate::seeds::outlier::Followers;

const ELEMENTS: u64 = 100_000;
const NAIVE: &str = "naive";
const DECLARED: &str = "declared";
static HAND: Followers = Followers { db: DB, threshold: 1_000, batch_size: 1_000 };

fn element(number: u64) -> Bson {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Bson::ObjectId(ObjectId::from_bytes(bytes))
}

fn push(client: &mut Client, collection: &str, number: u64) -> Result<()> {
    let push = doc! { "q": { "_id": 1 }, "u": { "$push": { "followers": element(number) } } };
    let reply =
        client.must(DB, &doc! { "update": collection, "updates": [push], "writeConcern": { "w": 1, "j": false } })?;
    if crate::seeds::as_number(reply.get("nModified")) == 1 { Ok(()) } else { Err(err!("{reply}")) }
}

/// A document with this many elements, made at once.
fn fill(client: &mut Client, collection: &str, elements: u64) -> Result<()> {
    let followers: Vec<Bson> = (0..elements).map(element).collect();
    client.must(DB, &doc! { "insert": collection, "documents": [{ "_id": 1, "followers": followers }] }).map(drop)
}

fn declare(server: &dyn Killable) -> Result<Client> {
    let mut client = server.connect()?;
    client.run(DB, &doc! { "drop": DECLARED })?;
    let outlier = doc! { "outlier": { "array": "followers", "into": "declaredOverflow", "parent": "userId" } };
    client.must(DB, &doc! { "create": DECLARED, "patterns": [outlier] })?;
    Ok(client)
}

pub fn append(both: &Both<'_>) -> Result<()> {
    let row = "outlier-append";
    let mut client = declare(both.espalier)?;
    fill(&mut client, DECLARED, 0)?;
    let tenth = ELEMENTS / 10;
    let mut tenths = Vec::new();
    for part in 0..10 {
        let rate =
            drive(both.espalier, CONNECTIONS, |n| n >= tenth, |client, n| push(client, DECLARED, part * tenth + n))?;
        if rate.failed > 0 {
            return Err(err!("{row}: {} appends failed", rate.failed));
        }
        println!("{row:<16} espalier, declared, elements {}..{}: {rate}", part * tenth, (part + 1) * tenth);
        tenths.push(rate.per_second());
    }
    let mean = ELEMENTS as f64 / tenths.iter().map(|rate| tenth as f64 / rate).sum::<f64>();
    bound(row, "time of an append, last tenth / second tenth", tenths[1] / tenths[9], 1.2);

    let mut client = both.mongod.connect()?;
    let mut hand = Vec::new();
    for elements in [1_000, 50_000, 99_000] {
        HAND.prepare(&mut client)?;
        fill_by_hand(&mut client, elements)?;
        let rate = drive_for(both.mongod, CONNECTIONS, both.duration, |client, n| {
            HAND.add_follower(client, 1, element(elements + n))
        })?;
        println!("{row:<16} mongod, by hand, from element {elements}: {rate}");
        hand.push(rate.per_second());
    }
    let hand = hand.len() as f64 / hand.iter().map(|rate| 1.0 / rate).sum::<f64>();
    verdict(row, "declared / by hand on mongod", mean / hand, 5.0);

    client.run(DB, &doc! { "drop": NAIVE })?;
    fill(&mut client, NAIVE, ELEMENTS)?;
    let naive = drive_for(both.mongod, CONNECTIONS, both.duration, |client, n| push(client, NAIVE, ELEMENTS + n))?;
    println!("{row:<16} mongod, $push into one array of {ELEMENTS}: {naive}");
    verdict(row, "declared / naive $push at 100,000", tenths[9] / naive.per_second(), 20.0);
    Ok(())
}

/// The state that the hand-written code would be in after so many adds one by one.
fn fill_by_hand(client: &mut Client, elements: u64) -> Result<()> {
    let head: Vec<Bson> = (0..elements.min(1_000)).map(element).collect();
    let batches: Vec<Document> = (1..elements.div_ceil(1_000))
        .map(|number| {
            let from = number * 1_000;
            let followers: Vec<Bson> = (from..(from + 1_000).min(elements)).map(element).collect();
            doc! { "userId": 1, "batchNumber": number as i64, "followers": followers, "createdAt": bson::DateTime::now() }
        })
        .collect();
    let flag = !batches.is_empty();
    let count = batches.len() as i64;
    for batch in batches.chunks(50) {
        client.must(DB, &doc! { "insert": Followers::OVERFLOW, "documents": batch.to_vec() })?;
    }
    let change = doc! { "$set": {
        "followers": head, "followerCount": elements as i64, "hasOverflow": flag, "overflowCount": count,
    } };
    client.must(DB, &doc! { "update": Followers::USERS, "updates": [{ "q": { "_id": 1 }, "u": change }] }).map(drop)
}

pub fn page(both: &Both<'_>) -> Result<()> {
    let row = "outlier-page";
    let mut client = declare(both.espalier)?;
    fill(&mut client, DECLARED, ELEMENTS)?;
    let mut client = both.mongod.connect()?;
    client.run(DB, &doc! { "drop": NAIVE })?;
    fill(&mut client, NAIVE, ELEMENTS)?;
    let sliced = |collection: &'static str| {
        let slice = doc! { "followers": { "$slice": [90_000, 50] } };
        let find = doc! { "find": collection, "filter": { "_id": 1 }, "projection": slice };
        move |client: &mut Client, _| {
            let reply = client.must(DB, &find)?;
            let first = reply.get_document("cursor")?.get_array("firstBatch")?.first().cloned();
            let count = first.and_then(|user| user.as_document()?.get_array("followers").ok().map(Vec::len));
            if count == Some(50) { Ok(()) } else { Err(err!("{count:?} elements")) }
        }
    };
    let declared = drive_for(both.espalier, CONNECTIONS, both.duration, sliced(DECLARED))?;
    println!("{row:<16} espalier, declared, 50 at 90,000: {declared}");
    let naive = drive_for(both.mongod, CONNECTIONS, both.duration, sliced(NAIVE))?;
    println!("{row:<16} mongod, $slice of one array of {ELEMENTS}: {naive}");
    verdict(row, "declared / $slice of the naive document", declared.per_second() / naive.per_second(), 10.0);
    HAND.prepare(&mut client)?;
    fill_by_hand(&mut client, ELEMENTS)?;
    let hand = drive_for(both.mongod, CONNECTIONS, both.duration, |client, _| {
        if HAND.page(client, 1, 1_800, 50)?.len() == 50 { Ok(()) } else { Err(err!("a short page")) }
    })?;
    println!("{row:<16} mongod, by hand: {hand}");
    Ok(())
}
