//! Documents of 1 to 12 MiB, inserted, replaced and deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};

use super::Work;
use crate::client::Client;
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, read_all};
use crate::error::Result;
use crate::random::Random;

const DB: &str = "crash_large";
const MIB: u64 = 1 << 20;
const DOCUMENTS_MAX: usize = 5;
/// Between two of them the disk belongs to the others.
const PAUSE: Duration = Duration::from_millis(30);

/// Documents of the collection `large`: the seed and the length of their bytes.
pub struct Large {
    large: Ledger<(i64, usize)>,
}

impl Large {
    pub fn new() -> Large {
        Large { large: Ledger::new(0) }
    }
}

/// Bytes that do not compress and that the seed tells.
fn bytes(seed: i64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed as u64);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn document(id: i64, seed: i64, length: usize) -> Document {
    let binary = Binary { subtype: BinarySubtype::Generic, bytes: bytes(seed, length) };
    doc! { "_id": id, "seed": seed, "bytes": binary }
}

impl Work for Large {
    fn name(&self) -> &'static str {
        "large"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        let index = doc! { "key": { "seed": 1 }, "name": "seed_1" };
        client.must(DB, &doc! { "createIndexes": "large", "indexes": [index] })?;
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let seed = random.below(1 << 40) as i64;
        let length = random.between(MIB as i64, 12 * MIB as i64) as usize;
        let any = self.large.any(random);
        match any {
            Some((id, _)) if self.large.known.len() >= DOCUMENTS_MAX || random.chance(1, 5) => {
                self.large.send(id, None);
                let delete = doc! { "delete": "large", "deletes": [{ "q": { "_id": id }, "limit": 1 }] };
                session.expect(DB, &delete, "n", 1)?;
            }
            Some((id, _)) if random.chance(1, 2) => {
                self.large.send(id, Some((seed, length)));
                let update = doc! { "q": { "_id": id }, "u": document(id, seed, length) };
                session.expect(DB, &doc! { "update": "large", "updates": [update] }, "nModified", 1)?;
            }
            _ => {
                let id = self.large.fresh_id();
                self.large.send(id, Some((seed, length)));
                let documents = vec![document(id, seed, length)];
                session.expect(DB, &doc! { "insert": "large", "documents": documents }, "n", 1)?;
            }
        }
        self.large.acknowledge();
        std::thread::sleep(PAUSE);
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        for document in read_all(client, DB, &doc! { "find": "large", "batchSize": 1 })? {
            let id = document.get_i64("_id")?;
            match (document.get_i64("seed"), document.get_binary_generic("bytes")) {
                (Ok(seed), Ok(stored)) if *stored == bytes(seed, stored.len()) => {
                    found.insert(id, (seed, stored.len()));
                }
                _ => problems.add(format!("large {id} is not what was written")),
            }
        }
        self.large.judge("large", found, problems);
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.large.acknowledged
    }
}
