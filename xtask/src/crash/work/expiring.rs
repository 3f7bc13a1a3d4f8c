//! A TTL index removes what has expired and nothing else, also after a crash in the middle of it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bson::{Bson, DateTime, Document, doc};

use super::Work;
use crate::client::Client;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, read_all};
use crate::error::Result;
use crate::random::Random;

const DB: &str = "crash_expiring";
const BATCH: u64 = 100;
const LASTING_MAX: usize = 5_000;
/// Until then everything expired must be gone at the end; the reference looks once a second as well.
const EXPIRED_WITHIN: Duration = Duration::from_secs(20);

/// `_id`s of documents: those that last, and those that were already past when they were inserted.
pub struct Expiring {
    lasting: BTreeSet<i64>,
    flying: BTreeSet<i64>,
    next_id: i64,
    acknowledged: u64,
    /// Whether this life of the server was told to look every second.
    is_told: bool,
}

impl Expiring {
    pub fn new() -> Expiring {
        Expiring { lasting: BTreeSet::new(), flying: BTreeSet::new(), next_id: 0, acknowledged: 0, is_told: false }
    }
}

/// Even ones expire.
fn lasts(id: i64) -> bool {
    id % 2 == 1
}

/// Not before everything is checked, or documents would go while they are counted.
fn look_every_second() -> Document {
    doc! { "setParameter": 1, "ttlMonitorSleepSecs": 1 }
}

impl Work for Expiring {
    fn name(&self) -> &'static str {
        "expiring"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        let index = doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 3600 };
        client.must(DB, &doc! { "createIndexes": "expiring", "indexes": [index] })?;
        Ok(())
    }

    fn step(&mut self, session: &mut Session, _random: &mut Random) -> Step {
        if !self.is_told {
            session.must("admin", &look_every_second())?;
            self.is_told = true;
        }
        let now = DateTime::now().timestamp_millis();
        let mut documents = Vec::new();
        for _ in 0..BATCH {
            self.next_id += 1;
            let at = if lasts(self.next_id) { now } else { now - 7_200_000 };
            documents.push(Bson::from(doc! { "_id": self.next_id, "at": DateTime::from_millis(at) }));
            if lasts(self.next_id) {
                self.flying.insert(self.next_id);
            }
        }
        session.expect(DB, &doc! { "insert": "expiring", "documents": documents }, "n", BATCH)?;
        self.lasting.append(&mut self.flying);
        self.acknowledged += BATCH;
        if self.lasting.len() > LASTING_MAX {
            let ids: Vec<i64> = std::mem::take(&mut self.lasting).into_iter().collect();
            self.flying = ids.iter().copied().collect();
            let delete = doc! { "q": { "_id": { "$in": ids } }, "limit": 0 };
            session.must(DB, &doc! { "delete": "expiring", "deletes": [delete] })?;
            self.flying.clear();
        }
        // The disk belongs to the others.
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let documents = read_all(client, DB, &doc! { "find": "expiring", "batchSize": 10_000 })?;
        problems.checked += documents.len() as u64;
        let found: BTreeSet<i64> = documents.iter().filter_map(|d| d.get_i64("_id").ok()).collect();
        let lasting: BTreeSet<i64> = found.iter().copied().filter(|id| lasts(*id)).collect();
        for id in self.lasting.difference(&lasting) {
            problems.add(format!("expiring {id} had not expired and is gone"));
        }
        for id in lasting.iter().filter(|id| !self.lasting.contains(id) && !self.flying.contains(id)) {
            problems.add(format!("expiring {id} is there and should not be"));
        }
        self.lasting = lasting;
        self.flying.clear();
        self.is_told = false;
        Ok(())
    }

    fn finish(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        client.must("admin", &look_every_second())?;
        let begun = Instant::now();
        loop {
            let documents = read_all(client, DB, &doc! { "find": "expiring", "batchSize": 10_000 })?;
            let found: BTreeSet<i64> = documents.iter().filter_map(|d| d.get_i64("_id").ok()).collect();
            if found == self.lasting {
                return Ok(());
            }
            if begun.elapsed() > EXPIRED_WITHIN {
                let left: Vec<_> = documents.iter().filter(|d| d.get_i64("_id").is_ok_and(|id| !lasts(id))).collect();
                let (count, lasting) = (found.len(), self.lasting.len());
                let first = left.first();
                problems.add(format!("{count} documents are left where {lasting} have not expired; first {first:?}"));
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}
