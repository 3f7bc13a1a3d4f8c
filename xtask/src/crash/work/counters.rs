//! Counters by `findAndModify` and documents by upsert: the number that the server said is the number that is stored.

use std::collections::BTreeMap;

use bson::{Bson, doc};

use super::Work;
use crate::client::{Client, is_ok};
use crate::crash::ledger::{Ledger, first_id};
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all, wrong};
use crate::error::Result;
use crate::random::Random;

const DB: &str = "crash_counters";
const COUNTERS: u64 = 50;

/// Documents of the collection `counters`: how often they were increased. They are found by a unique name, and only
/// the upsert that makes one says what its `_id` is.
pub struct Counters {
    writer: u64,
    counters: Ledger<i64>,
}

impl Counters {
    pub fn new(writer: u64) -> Counters {
        Counters { writer, counters: Ledger::new(writer) }
    }
}

impl Work for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        let index = doc! { "key": { "name": 1 }, "name": "name_1", "unique": true };
        client.must(DB, &doc! { "createIndexes": "counters", "indexes": [index] })?;
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let id = first_id(self.writer) + 1 + random.below(COUNTERS) as i64;
        let name = id.to_string();
        let before = self.counters.known.get(&id).copied();
        match (random.below(10), before) {
            (0, Some(n)) => {
                self.counters.send(id, None);
                let remove = doc! { "findAndModify": "counters", "query": { "name": &name }, "remove": true };
                let reply = session.must(DB, &remove)?;
                if reply.get_document("value").ok().and_then(|value| number(value, "n")) != Some(n) {
                    return Err(wrong(&remove, &reply));
                }
            }
            (1..6, _) => {
                let n = before.unwrap_or(0) + 1;
                self.counters.send(id, Some(n));
                let change = doc! { "$inc": { "n": 1i64 }, "$setOnInsert": { "_id": id } };
                let command = doc! {
                    "findAndModify": "counters", "query": { "name": &name }, "update": change, "upsert": true, "new": true,
                };
                let reply = session.must(DB, &command)?;
                if reply.get_document("value").ok().and_then(|value| number(value, "n")) != Some(n) {
                    return Err(wrong(&command, &reply));
                }
            }
            _ => {
                self.counters.send(id, Some(before.unwrap_or(0) + 1));
                let change = doc! { "$inc": { "n": 1i64 }, "$setOnInsert": { "_id": id } };
                let update = doc! { "q": { "name": &name }, "u": change, "upsert": true };
                let command = doc! { "update": "counters", "updates": [update] };
                let reply = session.expect(DB, &command, "n", 1)?;
                let made = reply.get_array("upserted").ok().and_then(|made| made.first()?.as_document()?.get("_id"));
                if !is_ok(&reply) || made != before.is_none().then_some(&Bson::Int64(id)) {
                    return Err(wrong(&command, &reply));
                }
            }
        }
        self.counters.acknowledge();
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        let ids = doc! { "$gte": first_id(self.writer), "$lt": first_id(self.writer + 1) };
        for document in read_all(client, DB, &doc! { "find": "counters", "filter": { "_id": ids } })? {
            match (document.get_i64("_id"), document.get_str("name"), number(&document, "n")) {
                (Ok(id), Ok(name), Some(n)) if name == id.to_string() => {
                    found.insert(id, n);
                }
                _ => problems.add(format!("half applied: {document}")),
            }
        }
        self.counters.judge("counters", found, problems);
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.counters.acknowledged
    }
}
