//! The large collection: documents of 500 bytes with two secondary indexes.

use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};

use super::DB;
use crate::error::Result;
use crate::process::Server;
use crate::random::Random;

pub const BIG: &str = "big";
/// Documents that share a value of `k`.
pub const PER_KEY: u64 = 10;
/// Values of `group`.
pub const GROUPS: u64 = 100;
const DOCUMENT_BYTES: usize = 500;
const BATCH: u64 = 1_000;

/// Loads the documents `_id` 0 to n, then builds the indexes, as one does with bulk data.
pub fn load(server: &dyn Server, documents: u64) -> Result<Duration> {
    let mut client = server.connect()?;
    client.set_timeout(Duration::from_secs(600))?;
    let started = Instant::now();
    let mut random = Random::new(7);
    let mut id = 0;
    while id < documents {
        let batch: Vec<Bson> = (id..documents.min(id + BATCH)).map(|id| document(id, &mut random).into()).collect();
        id += batch.len() as u64;
        let insert = doc! { "insert": BIG, "documents": batch, "writeConcern": { "w": 1, "j": false } };
        client.must(DB, &insert)?;
    }
    let indexes = doc! { "createIndexes": BIG, "indexes": [
        { "key": { "k": 1 }, "name": "k_1" },
        { "key": { "group": 1, "ts": 1 }, "name": "group_1_ts_1" },
    ] };
    client.must(DB, &indexes)?;
    Ok(started.elapsed())
}

/// A document of 500 bytes whose text compresses about as well as text does.
fn document(id: u64, random: &mut Random) -> Document {
    let mut document = doc! { "_id": id as i32, "k": (id / PER_KEY) as i32, "group": (id % GROUPS) as i32, "ts": (id * 7919 % 1_000_003) as i64, "n": 0i64 };
    let bytes = document.to_vec().map_or(0, |bytes| bytes.len());
    document.insert("fill", text(DOCUMENT_BYTES.saturating_sub(bytes + 11), random));
    document
}

/// Words out of a small vocabulary.
pub fn text(bytes: usize, random: &mut Random) -> String {
    const WORDS: [&str; 16] = [
        "saddle",
        "frame",
        "wheel",
        "gear",
        "brake",
        "chain",
        "pedal",
        "helmet",
        "road",
        "mountain",
        "carbon",
        "silver",
        "7834",
        "light",
        "hydraulic",
        "tube",
    ];
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        text.push_str(random.pick::<&str>(&WORDS));
        text.push_str(&format!("{:03x} ", random.below(4096)));
    }
    text.truncate(bytes);
    text
}
