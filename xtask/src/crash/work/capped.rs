//! Capped collections keep the last documents in order, within their limits.

use bson::{Bson, doc};

use super::Work;
use crate::client::Client;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all};
use crate::error::Result;
use crate::random::Random;

const DB: &str = "crash_capped";
const BYTES_MAX: i64 = 64 << 10;
const DOCUMENTS_MAX: i64 = 300;
const BATCH_MAX: u64 = 50;

/// Documents are numbered from 1; `by_count` is limited by number, `by_bytes` by size alone.
pub struct Capped {
    collections: [Log; 2],
    acknowledged: u64,
}

struct Log {
    name: &'static str,
    /// The last document that is certainly there, and the last that was sent.
    last: i64,
    sent: i64,
}

impl Capped {
    pub fn new() -> Capped {
        let log = |name| Log { name, last: 0, sent: 0 };
        Capped { collections: [log("by_count"), log("by_bytes")], acknowledged: 0 }
    }
}

/// How long the text of a document is; some are larger than others.
fn fill(n: i64) -> usize {
    if n % 7 == 0 { 2_000 } else { 20 + (n % 50) as usize }
}

impl Work for Capped {
    fn name(&self) -> &'static str {
        "capped"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        let count = doc! { "create": "by_count", "capped": true, "size": 16 << 20, "max": DOCUMENTS_MAX };
        client.must(DB, &count)?;
        client.must(DB, &doc! { "create": "by_bytes", "capped": true, "size": BYTES_MAX })?;
        for collection in ["by_count", "by_bytes"] {
            let index = doc! { "key": { "n": -1 }, "name": "n_-1" };
            client.must(DB, &doc! { "createIndexes": collection, "indexes": [index] })?;
        }
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let log = &mut self.collections[random.below(2) as usize];
        let count = 1 + random.below(BATCH_MAX);
        log.sent = log.last + count as i64;
        let documents: Vec<Bson> =
            (log.last + 1..=log.sent).map(|n| doc! { "_id": n, "n": n, "fill": "c".repeat(fill(n)) }.into()).collect();
        session.expect(DB, &doc! { "insert": log.name, "documents": documents }, "n", count)?;
        log.last = log.sent;
        self.acknowledged += count;
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        for log in &mut self.collections {
            let documents = read_all(client, DB, &doc! { "find": log.name, "batchSize": 10_000 })?;
            problems.checked += documents.len() as u64;
            let numbers: Vec<i64> = documents.iter().map(|document| number(document, "n").unwrap_or(-1)).collect();
            let (first, last) = (numbers.first().copied().unwrap_or(1), numbers.last().copied().unwrap_or(0));
            if !numbers.iter().copied().eq(first..=last) {
                problems.add(format!("{} is not in order or has gaps: {numbers:?}", log.name));
            }
            if last < log.last || last > log.sent {
                let (known, sent) = (log.last, log.sent);
                problems.add(format!("{} ends with {last}; acknowledged {known}, sent {sent}", log.name));
            }
            if documents.iter().any(|d| d.get_str("fill").map_or(0, str::len) != fill(number(d, "n").unwrap_or(0))) {
                problems.add(format!("a document of {} is not whole", log.name));
            }
            let bytes: i64 = documents.iter().map(|d| d.to_vec().map_or(0, |bytes| bytes.len() as i64)).sum();
            let (is_full, is_over) = if log.name == "by_count" {
                (numbers.len() as i64 == DOCUMENTS_MAX, numbers.len() as i64 > DOCUMENTS_MAX)
            } else {
                // Full is where the next larger one before would not have had room.
                (bytes + 2_100 > BYTES_MAX, bytes > BYTES_MAX)
            };
            if is_over || (first > 1 && !is_full) {
                let count = numbers.len();
                problems.add(format!("{} keeps {count} documents, {bytes} bytes, from {first} to {last}", log.name));
            }
            (log.last, log.sent) = (last, last);
        }
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}
