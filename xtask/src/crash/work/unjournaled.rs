//! Writes with `j: false` may be lost, but only the last ones: what survives is a prefix of what the connection wrote.

use std::collections::BTreeMap;

use bson::{Document, doc};

use super::Work;
use crate::client::Client;
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all};
use crate::error::Result;
use crate::random::Random;

const DB: &str = "crash_unjournaled";
const DOCUMENTS_MAX: usize = 3_000;
/// After so many a journaled write makes them certain.
const UNJOURNALED_MAX: usize = 2_000;
/// The document that changes all the time.
const HOT: i64 = 0;

/// Documents of the collection `unjournaled`: a number.
pub struct Unjournaled {
    documents: Ledger<i64>,
}

impl Unjournaled {
    pub fn new() -> Unjournaled {
        Unjournaled { documents: Ledger::new(0) }
    }
}

impl Work for Unjournaled {
    fn name(&self) -> &'static str {
        "unjournaled"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        client.must(DB, &doc! { "insert": "unjournaled", "documents": [{ "_id": HOT, "n": 0i64 }] })?;
        self.documents.send(HOT, Some(0));
        self.documents.acknowledge();
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let hot = self.documents.latest(HOT).unwrap_or(0) + 1;
        let any = self.documents.any(random).map(|(id, _)| id).filter(|id| *id != HOT);
        let (mut command, field): (Document, &str) = match (random.below(10), any) {
            (0..3, _) => {
                self.documents.send(HOT, Some(hot));
                let update = doc! { "q": { "_id": HOT }, "u": { "$inc": { "n": 1i64 } } };
                (doc! { "update": "unjournaled", "updates": [update] }, "nModified")
            }
            (3..5, Some(id)) if self.documents.latest(id).is_some() => {
                self.documents.send(id, None);
                (doc! { "delete": "unjournaled", "deletes": [{ "q": { "_id": id }, "limit": 1 }] }, "n")
            }
            _ if self.documents.known.len() > DOCUMENTS_MAX => {
                let Some(id) = any.filter(|id| self.documents.latest(*id).is_some()) else { return Ok(()) };
                self.documents.send(id, None);
                (doc! { "delete": "unjournaled", "deletes": [{ "q": { "_id": id }, "limit": 1 }] }, "n")
            }
            _ => {
                let id = self.documents.fresh_id();
                self.documents.send(id, Some(id));
                (doc! { "insert": "unjournaled", "documents": [{ "_id": id, "n": id }] }, "n")
            }
        };
        let journal = random.chance(1, 500) || self.documents.in_flight() > UNJOURNALED_MAX;
        command.insert("writeConcern", doc! { "w": 1, "j": journal });
        session.expect(DB, &command, field, 1)?;
        if journal {
            self.documents.acknowledge();
        }
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        for document in read_all(client, DB, &doc! { "find": "unjournaled", "batchSize": 10_000 })? {
            match (number(&document, "_id"), number(&document, "n")) {
                (Some(id), Some(n)) => {
                    found.insert(id, n);
                }
                _ => problems.add(format!("half applied: {document}")),
            }
        }
        self.documents.judge("unjournaled", found, problems);
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.documents.acknowledged
    }
}
