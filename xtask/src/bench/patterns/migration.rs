//! What clients notice of a migration: sixteen of them read and write while patterns are declared and dropped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bson::{DateTime, Document, doc};

use super::{Both, DB, bound, drive, drive_for};
use crate::client::Client;
use crate::error::{Result, err};
use crate::random::Random;

const CLIENTS: usize = 16;
const DOCUMENTS: i32 = 40_000;
const COLLECTION: &str = "migrated";

fn load(client: &mut Client) -> Result<()> {
    client.run(DB, &doc! { "drop": COLLECTION })?;
    let document = |id: i32| {
        let ts = DateTime::from_millis(i64::from(id) * 10_000);
        let tags: Vec<i32> = (0..30).collect();
        doc! { "_id": id, "s": id % 20, "ts": ts, "n": 0, "done": false, "tags": tags }
    };
    for first in (0..DOCUMENTS).step_by(5_000) {
        let documents: Vec<Document> = (first..first + 5_000).map(document).collect();
        client.must(DB, &doc! { "insert": COLLECTION, "documents": documents })?;
    }
    Ok(())
}

/// Half reads, half updates, of documents all over the collection.
fn one(client: &mut Client, number: u64) -> Result<()> {
    let id = Random::new(number).below(DOCUMENTS as u64) as i32;
    let command = if number.is_multiple_of(2) {
        doc! { "find": COLLECTION, "filter": { "_id": id } }
    } else {
        doc! { "update": COLLECTION, "updates": [{ "q": { "_id": id }, "u": { "$inc": { "n": 1 } } }] }
    };
    client.must(DB, &command).map(drop)
}

pub fn run(both: &Both<'_>) -> Result<()> {
    let row = "migration";
    let patterns = [
        doc! { "outlier": { "array": "tags", "threshold": 10, "batchSize": 10 } },
        doc! { "bucket": { "by": ["s"], "time": "ts", "every": "1h" } },
    ];
    for pattern in patterns {
        let kind = pattern.keys().next().cloned().unwrap_or_default();
        let mut client = both.espalier.connect()?;
        load(&mut client)?;
        client.set_timeout(Duration::from_secs(600))?;
        for (name, wanted) in [("in", vec![pattern.clone()]), ("out", Vec::new())] {
            // Idle is without a migration, in the state that the migration begins with.
            let idle = drive_for(both.espalier, CLIENTS, both.duration, one)?;
            let over = AtomicBool::new(false);
            let (took, busy) = std::thread::scope(|scope| {
                let modify = scope.spawn(|| -> Result<Duration> {
                    let begun = Instant::now();
                    let done = client.must(DB, &doc! { "collMod": COLLECTION, "patterns": &wanted });
                    over.store(true, Ordering::Relaxed);
                    done.map(|_| begun.elapsed())
                });
                let busy = drive(both.espalier, CLIENTS, |_| over.load(Ordering::Relaxed), one);
                (modify.join().unwrap_or_else(|_| Err(err!("collMod panicked"))), busy)
            });
            let (took, busy) = (took?, busy?);
            println!("{row:<16} {kind} {name}, {DOCUMENTS} documents in {took:.2?}: idle {idle}; meanwhile {busy}");
            let ratio = busy.at(0.99).as_secs_f64() / idle.at(0.99).as_secs_f64();
            bound(row, &format!("p99 of {CLIENTS} clients, {kind} {name} / idle"), ratio, 2.0);
        }
    }
    Ok(())
}
