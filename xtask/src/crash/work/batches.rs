//! A thousand documents with one command, and updates and deletes of many: a prefix of an unanswered one may have happened.

use std::collections::BTreeMap;

use bson::{Bson, doc};

use super::Work;
use crate::client::Client;
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all};
use crate::error::Result;
use crate::random::Random;

const DB: &str = "crash_batches";
const BATCH: u64 = 1_000;
const GROUPS: u64 = 8;
const DOCUMENTS_MAX: usize = 20_000;

/// Documents of the collection `many`: their group and how often they were updated.
pub struct Batches {
    many: Ledger<(i64, i64)>,
}

impl Batches {
    pub fn new() -> Batches {
        Batches { many: Ledger::new(0) }
    }

    fn insert(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let documents: Vec<Bson> = (0..BATCH)
            .map(|_| {
                let (id, group) = (self.many.fresh_id(), random.below(GROUPS) as i64);
                self.many.send(id, Some((group, 0)));
                doc! { "_id": id, "group": group, "n": 0i64, "double": 0i64 }.into()
            })
            .collect();
        session.expect(DB, &doc! { "insert": "many", "documents": documents }, "n", BATCH)?;
        self.many.acknowledge();
        Ok(())
    }

    /// The documents of a group, which are also in the order in which a multi update or delete takes them.
    fn group(&self, group: i64) -> Vec<(i64, i64)> {
        self.many.known.iter().filter(|(_, (of, _))| *of == group).map(|(id, (_, n))| (*id, *n)).collect()
    }

    fn update(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let group = random.below(GROUPS) as i64;
        let members = self.group(group);
        members.iter().for_each(|(id, n)| self.many.send(*id, Some((group, n + 1))));
        let change = doc! { "$inc": { "n": 1i64, "double": 2i64 } };
        let update = doc! { "q": { "group": group }, "u": change, "multi": true };
        let count = members.len() as u64;
        session.expect(DB, &doc! { "update": "many", "updates": [update] }, "nModified", count)?;
        self.many.acknowledge();
        Ok(())
    }

    fn delete(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let group = random.below(GROUPS) as i64;
        let members = self.group(group);
        members.iter().for_each(|(id, _)| self.many.send(*id, None));
        let delete = doc! { "q": { "group": group }, "limit": 0 };
        session.expect(DB, &doc! { "delete": "many", "deletes": [delete] }, "n", members.len() as u64)?;
        self.many.acknowledge();
        Ok(())
    }
}

impl Work for Batches {
    fn name(&self) -> &'static str {
        "batches"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        // Not on `group`: a multi write then takes the documents in the order of their insertion.
        let index = doc! { "key": { "n": 1, "double": -1 }, "name": "n_1_double_-1" };
        client.must(DB, &doc! { "createIndexes": "many", "indexes": [index] })?;
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        match random.below(10) {
            _ if self.many.known.len() > DOCUMENTS_MAX => self.delete(session, random),
            0..5 => self.insert(session, random),
            5..8 => self.update(session, random),
            _ => self.delete(session, random),
        }
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        for document in read_all(client, DB, &doc! { "find": "many", "batchSize": 10_000 })? {
            let field = |name| number(&document, name);
            match (field("_id"), field("group"), field("n"), field("double")) {
                (Some(id), Some(group), Some(n), Some(double)) if double == 2 * n => {
                    found.insert(id, (group, n));
                }
                _ => problems.add(format!("half applied: {document}")),
            }
        }
        self.many.judge("many", found, problems);
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.many.acknowledged
    }
}
