//! Arrays with a multikey index, and a unique one: an index answers exactly what a scan does, also after a crash.

use std::collections::{BTreeMap, BTreeSet};

use bson::{Document, doc};

use super::Work;
use crate::client::{Client, is_ok};
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, code, number, read_all, wrong};
use crate::error::Result;
use crate::random::Random;

const DB: &str = "crash_arrays";
const TAGS: i64 = 12;
const DOCUMENTS_MAX: usize = 400;

/// Documents of the collection `arrays`: their tags in order, and their slots, which no two documents share.
pub struct Arrays {
    arrays: Ledger<(Vec<i64>, Vec<i64>)>,
}

impl Arrays {
    pub fn new() -> Arrays {
        Arrays { arrays: Ledger::new(0) }
    }

    fn insert(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let id = self.arrays.fresh_id();
        let tags: Vec<i64> = (0..random.below(5)).map(|_| random.between(0, TAGS - 1)).collect();
        let slots = vec![random.between(0, 5_000)];
        self.arrays.send(id, Some((tags.clone(), slots.clone())));
        let documents = vec![doc! { "_id": id, "tags": tags, "slots": slots, "on": [{ "n": id }, { "n": -id }] }];
        self.write(session, &doc! { "insert": "arrays", "documents": documents })
    }

    fn update(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, (mut tags, mut slots))) = self.arrays.any(random) else { return self.insert(session, random) };
        let tag = random.between(0, TAGS - 1);
        let change = match random.below(5) {
            0 => {
                tags.push(tag);
                doc! { "$push": { "tags": tag } }
            }
            1 => {
                tags.extend([tag, tag + 1]);
                tags.sort_unstable();
                tags.truncate(6);
                doc! { "$push": { "tags": { "$each": [tag, tag + 1], "$sort": 1, "$slice": 6 } } }
            }
            2 => {
                tags.retain(|other| *other != tag);
                doc! { "$pull": { "tags": tag } }
            }
            3 => {
                let slot = random.between(0, 5_000);
                if !slots.contains(&slot) {
                    slots.push(slot);
                }
                doc! { "$addToSet": { "slots": slot } }
            }
            _ => {
                tags = vec![tag];
                doc! { "$set": { "tags": [tag] } }
            }
        };
        self.arrays.send(id, Some((tags, slots)));
        self.write(session, &doc! { "update": "arrays", "updates": [{ "q": { "_id": id }, "u": change }] })
    }

    fn delete(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, _)) = self.arrays.any(random) else { return Ok(()) };
        self.arrays.send(id, None);
        self.write(session, &doc! { "delete": "arrays", "deletes": [{ "q": { "_id": id }, "limit": 1 }] })
    }

    /// One document; a slot that another document has is refused.
    fn write(&mut self, session: &mut Session, command: &Document) -> Step {
        let reply = session.run(DB, command)?;
        match code(&reply) {
            None if is_ok(&reply) && number(&reply, "n") == Some(1) => self.arrays.acknowledge(),
            Some(11000) => self.arrays.refuse(),
            _ => return Err(wrong(command, &reply)),
        }
        Ok(())
    }
}

impl Work for Arrays {
    fn name(&self) -> &'static str {
        "arrays"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        let indexes = vec![
            doc! { "key": { "tags": 1 }, "name": "tags_1" },
            doc! { "key": { "slots": 1 }, "name": "slots_1", "unique": true },
            doc! { "key": { "on.n": 1 }, "name": "on.n_1", "sparse": true },
        ];
        client.must(DB, &doc! { "createIndexes": "arrays", "indexes": indexes })?;
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        match random.below(10) {
            _ if self.arrays.known.len() > DOCUMENTS_MAX => self.delete(session, random),
            0..3 => self.insert(session, random),
            3..9 => self.update(session, random),
            _ => self.delete(session, random),
        }
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for document in read_all(client, DB, &doc! { "find": "arrays", "batchSize": 10_000 })? {
            let id = document.get_i64("_id")?;
            let (tags, slots) = (integers(&document, "tags"), integers(&document, "slots"));
            for slot in &slots {
                if !taken.insert(*slot) {
                    problems.add(format!("the slot {slot} of {id} is there twice"));
                }
            }
            found.insert(id, (tags, slots));
        }
        for tag in 0..=TAGS {
            let by_index = doc! { "find": "arrays", "filter": { "tags": tag }, "hint": "tags_1", "batchSize": 10_000 };
            let by_index = read_all(client, DB, &by_index)?;
            let by_index: BTreeSet<i64> = by_index.iter().filter_map(|d| d.get_i64("_id").ok()).collect();
            let by_scan: BTreeSet<i64> =
                found.iter().filter(|(_, (tags, _))| tags.contains(&tag)).map(|(id, _)| *id).collect();
            if by_index != by_scan {
                problems.add(format!("tag {tag}: the index gives {by_index:?}, the documents say {by_scan:?}"));
            }
        }
        self.arrays.judge("arrays", found, problems);
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.arrays.acknowledged
    }
}

fn integers(document: &Document, name: &str) -> Vec<i64> {
    let array = document.get_array(name).map(Vec::as_slice).unwrap_or_default();
    array.iter().filter_map(|value| value.as_i64().or_else(|| value.as_i32().map(i64::from))).collect()
}
