//! The collections of the aggregation rows: many small documents, orders with their customers, documents with arrays.

use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};

use super::DB;
use crate::client::Client;
use crate::error::Result;
use crate::process::Server;
use crate::random::Random;

pub const READINGS: &str = "readings";
pub const SENSORS: u64 = 1_000;
/// One in so many readings has a given value of `part`, which is indexed.
pub const PARTS: u64 = 10;
pub const ORDERS: &str = "orders";
pub const CUSTOMERS: &str = "customers";
pub const BASKETS: &str = "baskets";
pub const SERIES: &str = "series";
/// Entries of a basket.
pub const ENTRIES: u64 = 100;
const BATCH: u64 = 2_000;

/// How many documents a collection has, given how many readings there are to be.
pub fn count(collection: &str, readings: u64) -> u64 {
    let share = match collection {
        ORDERS => 10,
        CUSTOMERS | BASKETS => 100,
        SERIES => 5,
        _ => 1,
    };
    (readings / share).max(1)
}

pub fn load(server: &dyn Server, readings: u64) -> Result<Duration> {
    let mut client = server.connect()?;
    client.set_timeout(Duration::from_secs(600))?;
    let mut random = Random::new(11);
    let started = Instant::now();
    let customers = count(CUSTOMERS, readings);
    fill(&mut client, READINGS, readings, |id| {
        let value = random.below(1_000_000) as f64 / 1000.0;
        doc! { "_id": id as i32, "sensor": (id * 7919 % SENSORS) as i32, "part": (id * 31 % PARTS) as i32, "value": value, "count": (id % 97) as i32 }
    })?;
    fill(&mut client, CUSTOMERS, customers, |id| {
        doc! { "_id": id as i32, "number": id as i32, "name": format!("customer {id}"), "city": format!("city {}", id % 50) }
    })?;
    fill(&mut client, ORDERS, count(ORDERS, readings), |id| {
        doc! { "_id": id as i32, "customer": random.below(customers) as i32, "total": random.below(100_000) as f64 / 100.0 }
    })?;
    fill(&mut client, BASKETS, count(BASKETS, readings), |id| {
        let items = (0..ENTRIES).map(|n| doc! { "sku": ((id * 31 + n * 7) % 500) as i32, "quantity": (n % 5) as i32 });
        doc! { "_id": id as i32, "items": items.collect::<Vec<_>>() }
    })?;
    fill(&mut client, SERIES, count(SERIES, readings), |id| {
        doc! { "_id": id as i32, "sensor": (id % 200) as i32, "t": (id * 7919 % 1_000_003) as i32, "value": random.below(10_000) as i32 }
    })?;
    let index = |client: &mut Client, collection: &str, field: &str| {
        let key = Document::from_iter([(field.to_string(), Bson::Int32(1))]);
        client.must(DB, &doc! { "createIndexes": collection, "indexes": [{ "key": key, "name": field }] }).map(drop)
    };
    index(&mut client, READINGS, "part")?;
    index(&mut client, CUSTOMERS, "number")?;
    Ok(started.elapsed())
}

fn fill(client: &mut Client, collection: &str, count: u64, mut document: impl FnMut(u64) -> Document) -> Result<()> {
    let mut id = 0;
    while id < count {
        let batch: Vec<Bson> = (id..count.min(id + BATCH)).map(|id| document(id).into()).collect();
        id += batch.len() as u64;
        let insert = doc! { "insert": collection, "documents": batch, "writeConcern": { "w": 1, "j": false } };
        client.must(DB, &insert)?;
    }
    Ok(())
}
