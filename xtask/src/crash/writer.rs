//! A client that writes until the server dies under it.

use std::sync::atomic::{AtomicBool, Ordering};

use bson::{Bson, Document, doc};

use super::DB;
use super::ledger::Ledger;
use crate::client::{Client, is_ok};
use crate::error::{Result, err};
use crate::random::Random;

/// Keys for which the writers compete in the collection with the unique index.
const KEYS: u64 = 2_000;
const BATCH_MAX: u64 = 20;

/// Writes until the connection breaks, which must be after the kill, and returns what is known.
pub fn write(port: u16, mut ledger: Ledger, mut random: Random, killed: &AtomicBool) -> Result<Ledger> {
    let Ok(mut client) = Client::connect(port) else {
        // The kill can come before the connection.
        return if killed.load(Ordering::SeqCst) { Ok(ledger) } else { Err(err!("cannot connect")) };
    };
    loop {
        match step(&mut client, &mut ledger, &mut random) {
            Ok(()) => {}
            Err(Step::Broken(_)) if killed.load(Ordering::SeqCst) => return Ok(ledger),
            Err(Step::Broken(error)) => return Err(err!("the connection broke before the kill: {error}")),
            Err(Step::Wrong(what)) => return Err(err!("{what}")),
        }
    }
}

/// Why a step did not succeed.
enum Step {
    /// No reply came: the write may have happened or not.
    Broken(String),
    /// A reply came that should not.
    Wrong(String),
}

fn step(client: &mut Client, ledger: &mut Ledger, random: &mut Random) -> std::result::Result<(), Step> {
    match random.below(100) {
        0..30 => insert(client, ledger, 1),
        30..40 => insert(client, ledger, 1 + random.below(BATCH_MAX)),
        40..75 => increment(client, ledger, random),
        75..83 => delete(client, ledger, random),
        83..98 => compete(client, ledger, random),
        _ => toggle_index(client, ledger),
    }
}

fn insert(client: &mut Client, ledger: &mut Ledger, count: u64) -> std::result::Result<(), Step> {
    let documents: Vec<Bson> = (0..count)
        .map(|_| {
            let id = ledger.fresh_id();
            ledger.in_flight.insert(id, Some(0));
            doc! { "_id": id, "n": 0i64, "mirror": 0i64, "writer": ledger.writer as i64, "fill": "x".repeat(100) }
                .into()
        })
        .collect();
    let reply = send(client, &doc! { "insert": "main", "documents": documents })?;
    expect(&reply, "n", count as i64)?;
    ledger.acknowledge();
    Ok(())
}

/// Two fields go up together: a reader must never see one without the other.
fn increment(client: &mut Client, ledger: &mut Ledger, random: &mut Random) -> std::result::Result<(), Step> {
    let Some((id, n)) = any(&ledger.documents, random) else { return insert(client, ledger, 1) };
    let by = random.between(1, 5);
    ledger.in_flight.insert(id, Some(n + by));
    let update = doc! { "q": { "_id": id }, "u": { "$inc": { "n": by, "mirror": by } } };
    let reply = send(client, &doc! { "update": "main", "updates": [update] })?;
    expect(&reply, "nModified", 1)?;
    ledger.acknowledge();
    Ok(())
}

fn delete(client: &mut Client, ledger: &mut Ledger, random: &mut Random) -> std::result::Result<(), Step> {
    let Some((id, _)) = any(&ledger.documents, random) else { return Ok(()) };
    ledger.in_flight.insert(id, None);
    let reply = send(client, &doc! { "delete": "main", "deletes": [{ "q": { "_id": id }, "limit": 1 }] })?;
    expect(&reply, "n", 1)?;
    ledger.acknowledge();
    Ok(())
}

/// Takes a key that another writer may hold, or gives one back.
fn compete(client: &mut Client, ledger: &mut Ledger, random: &mut Random) -> std::result::Result<(), Step> {
    if random.chance(1, 3)
        && let Some((id, _)) = any(&ledger.unique, random)
    {
        ledger.unique_in_flight.insert(id, None);
        let reply = send(client, &doc! { "delete": "unique", "deletes": [{ "q": { "_id": id }, "limit": 1 }] })?;
        expect(&reply, "n", 1)?;
        ledger.acknowledge();
        return Ok(());
    }
    let (id, key) = (ledger.fresh_id(), random.below(KEYS) as i64);
    ledger.unique_in_flight.insert(id, Some(key));
    let reply = send(client, &doc! { "insert": "unique", "documents": [{ "_id": id, "key": key }] })?;
    let errors = reply.get_array("writeErrors").ok().and_then(|errors| errors.first()?.as_document());
    match errors.map(|error| error.get_i32("code")) {
        None => {
            expect(&reply, "n", 1)?;
            ledger.acknowledge();
        }
        Some(Ok(11000)) => ledger.unique_in_flight.clear(),
        Some(_) => return Err(Step::Wrong(format!("inserting a competing key: {reply}"))),
    }
    Ok(())
}

fn toggle_index(client: &mut Client, ledger: &mut Ledger) -> std::result::Result<(), Step> {
    let (name, exists) = (ledger.index_name(), ledger.index == Some(true));
    ledger.index = None;
    let command = if exists {
        doc! { "dropIndexes": "main", "index": &name }
    } else {
        let field = format!("toggled{}", ledger.writer);
        doc! { "createIndexes": "main", "indexes": [{ "key": { field: 1, "n": -1 }, "name": &name }] }
    };
    let reply = send(client, &command)?;
    // Another index build on the collection may abort a drop or a build; then the next round looks what is there.
    let conflict = matches!(reply.get_i32("code"), Ok(112 | 276 | 11602));
    if !is_ok(&reply) && !conflict {
        return Err(Step::Wrong(format!("{command} failed: {reply}")));
    }
    if is_ok(&reply) {
        ledger.acknowledged += 1;
        ledger.index = Some(!exists);
    } else {
        ledger.index = Some(exists);
    }
    Ok(())
}

fn send(client: &mut Client, command: &Document) -> std::result::Result<Document, Step> {
    client.run(DB, command).map_err(|error| Step::Broken(error.0))
}

fn expect(reply: &Document, field: &str, count: i64) -> std::result::Result<(), Step> {
    let found = match reply.get(field) {
        Some(Bson::Int32(n)) => i64::from(*n),
        Some(Bson::Int64(n)) => *n,
        _ => -1,
    };
    if is_ok(reply) && found == count && !reply.contains_key("writeErrors") && !reply.contains_key("writeConcernError")
    {
        Ok(())
    } else {
        Err(Step::Wrong(format!("expected {field}: {count}, got {reply}")))
    }
}

/// A random entry: the first at or after a random place between the first and the last.
fn any(map: &std::collections::BTreeMap<i64, i64>, random: &mut Random) -> Option<(i64, i64)> {
    let (first, last) = (*map.first_key_value()?.0, *map.last_key_value()?.0);
    map.range(random.between(first, last)..).next().map(|(id, n)| (*id, *n))
}
