//! Declares, changes and drops the patterns of collections that others write to. A migration that is cut off goes on after
//! the restart and ends where it was to end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bson::{Bson, DateTime, Document, doc};

use super::{DB, Work, archive, bucket, outlier};
use crate::client::{Client, is_ok};
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, code, read_all, wrong};
use crate::error::{Result, err};
use crate::random::Random;

/// A collection, and what is declared on it: nothing, or one of these.
struct Declared {
    collection: &'static str,
    choices: fn() -> Vec<Document>,
    /// One of many documents that nobody writes, so that a migration takes its time.
    still: fn(i64) -> Document,
}

static DECLARED: &[Declared] = &[
    Declared {
        collection: archive::COLLECTION,
        choices: || {
            vec![
                doc! { "archive": { "when": { "done": true }, "into": "old", "every": "1s", "read": "union" } },
                doc! { "archive": {
                    "when": { "done": true }, "into": "older", "every": "1s", "read": "union", "stamp": { "by": "age" },
                } },
            ]
        },
        still: |id| doc! { "_id": id, "number": id, "n": 0i64, "done": id % 2 == 0 },
    },
    Declared {
        collection: bucket::COLLECTION,
        choices: || {
            let stats = doc! { "v": ["min", "max", "sum", "count", "avg"] };
            vec![
                doc! { "bucket": { "by": ["s"], "time": "ts", "every": "1h", "maxCount": 20, "stats": &stats } },
                doc! { "bucket": { "by": ["s"], "time": "ts", "every": "3h", "maxCount": 50, "into": "b3" } },
            ]
        },
        still: |id| doc! { "_id": id, "s": -1i64, "ts": DateTime::from_millis(-id * 60_000), "v": id % 7 },
    },
    Declared {
        collection: outlier::COLLECTION,
        choices: || {
            vec![
                doc! { "outlier": { "array": "list", "threshold": 10, "batchSize": 10 } },
                doc! { "outlier": { "array": "list", "threshold": 5, "batchSize": 20, "into": "more" } },
            ]
        },
        still: |id| doc! { "_id": id, "list": (0..-id % 50).collect::<Vec<i64>>() },
    },
];

/// The code of a `collMod` during another migration of the collection.
const BEING_MIGRATED: i32 = 117;
/// Documents of each collection that nobody writes; their `_id`s are negative.
const STILL: i64 = 1_000;
/// A migration of these small collections takes seconds at most.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The number of the declaration of each collection (0 is none), and those it may have because there was no answer.
pub struct Migrator {
    known: Vec<usize>,
    possible: Vec<Vec<usize>>,
    resumed: u64,
    acknowledged: u64,
}

impl Migrator {
    pub fn new() -> Migrator {
        Migrator {
            known: vec![0; DECLARED.len()],
            possible: vec![Vec::new(); DECLARED.len()],
            resumed: 0,
            acknowledged: 0,
        }
    }

    /// Compares a collection that is not being migrated with what was asked for.
    fn judge(&mut self, at: usize, found: usize, problems: &mut Problems) {
        let possible = std::mem::take(&mut self.possible[at]);
        let known = std::mem::replace(&mut self.known[at], found);
        if found != known && !possible.contains(&found) {
            let name = DECLARED[at].collection;
            problems.add(format!("{name} had the declaration {known}, asked for were {possible:?}, found {found}"));
        }
    }

    /// What is declared on a collection now, and whether it is being migrated.
    fn look(client: &mut Client, declared: &Declared) -> Result<(usize, bool)> {
        let list = doc! { "listCollections": 1, "filter": { "name": declared.collection } };
        let info = read_all(client, DB, &list)?;
        let options = info.first().and_then(|info| info.get_document("options").ok()).cloned().unwrap_or_default();
        let migrating = options.contains_key("patternJob");
        let Some(pattern) = options.get_array("patterns").ok().and_then(|list| list.first()?.as_document()) else {
            return Ok((0, migrating));
        };
        let choices = (declared.choices)();
        let at = choices.iter().position(|choice| covers(&Bson::from(pattern.clone()), &Bson::from(choice.clone())));
        let at = at.ok_or_else(|| err!("{} has the pattern {pattern}, which nobody declared", declared.collection))?;
        Ok((at + 1, migrating))
    }
}

/// Whether the listed declaration says all that was declared.
fn covers(listed: &Bson, declared: &Bson) -> bool {
    let as_number =
        |value: &Bson| value.as_i64().or(value.as_i32().map(i64::from)).or(value.as_f64().map(|n| n as i64));
    match (listed, declared) {
        (Bson::Document(listed), Bson::Document(declared)) => {
            declared.iter().all(|(name, value)| listed.get(name).is_some_and(|listed| covers(listed, value)))
        }
        (listed, declared) => match (as_number(listed), as_number(declared)) {
            (Some(listed), Some(declared)) => listed == declared,
            _ => listed == declared,
        },
    }
}

/// What nobody writes is there once, and as it was but for the fields that a pattern adds.
fn check_still(client: &mut Client, declared: &Declared, problems: &mut Problems) -> Result<()> {
    let mut missing: BTreeMap<i64, Document> = (1..=STILL).map(|id| (-id, (declared.still)(-id))).collect();
    let find = doc! { "find": declared.collection, "filter": { "_id": { "$lt": 0 } }, "batchSize": 10_000 };
    for document in read_all(client, DB, &find)? {
        problems.checked += 1;
        let expected = document.get_i64("_id").ok().and_then(|id| missing.remove(&id));
        let is_same = |expected: Document| covers(&Bson::from(document.clone()), &Bson::from(expected));
        if !expected.is_some_and(is_same) {
            problems.add(format!("{}: changed by nobody, or there twice: {document}", declared.collection));
        }
    }
    if let Some((id, _)) = missing.first_key_value() {
        problems.add(format!("{}: {} that nobody deleted are gone, {id} first", declared.collection, missing.len()));
    }
    Ok(())
}

impl Work for Migrator {
    fn name(&self) -> &'static str {
        "migrator"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        for declared in DECLARED {
            let documents: Vec<Document> = (1..=STILL).map(|id| (declared.still)(-id)).collect();
            client.must(DB, &doc! { "insert": declared.collection, "documents": documents })?;
        }
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let at = random.below(DECLARED.len() as u64) as usize;
        let choices = (DECLARED[at].choices)();
        let choice = random.below(choices.len() as u64 + 1) as usize;
        let patterns: Vec<Document> = choices.get(choice.wrapping_sub(1)).cloned().into_iter().collect();
        self.possible[at].push(choice);
        let command = doc! { "collMod": DECLARED[at].collection, "patterns": patterns };
        let reply = session.run(DB, &command)?;
        match code(&reply) {
            None if is_ok(&reply) => {
                self.known[at] = choice;
                self.possible[at].clear();
                self.acknowledged += 1;
            }
            // One that was cut off by the kill is going on.
            Some(BEING_MIGRATED) => drop(self.possible[at].pop()),
            _ => return Err(wrong(&command, &reply)),
        }
        std::thread::sleep(Duration::from_millis(random.below(150)));
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        for (at, declared) in DECLARED.iter().enumerate() {
            let (found, migrating) = Migrator::look(client, declared)?;
            problems.checked += 1;
            if migrating {
                self.resumed += 1;
            } else {
                self.judge(at, found, problems);
            }
            check_still(client, declared, problems)?;
        }
        Ok(())
    }

    fn settle(&mut self, client: &mut Client, problems: &mut Problems) -> Result<bool> {
        let deadline = Instant::now() + TIMEOUT;
        let mut waited = false;
        for (at, declared) in DECLARED.iter().enumerate() {
            loop {
                let (found, migrating) = Migrator::look(client, declared)?;
                if !migrating {
                    self.judge(at, found, problems);
                    break;
                }
                waited = true;
                if Instant::now() > deadline {
                    return Err(err!("{} is still being migrated after {TIMEOUT:?}", declared.collection));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(waited)
    }

    fn resumed(&self) -> u64 {
        self.resumed
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}
