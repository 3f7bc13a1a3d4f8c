//! `$out` and `$merge`: the target of `$out` is the old one or the new one, that of `$merge` is complete once answered.

use std::collections::BTreeSet;

use bson::{Bson, doc};

use super::Work;
use crate::client::Client;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all};
use crate::error::Result;
use crate::random::Random;

const DB: &str = "crash_output";
const OTHER_DB: &str = "crash_output_other";
const DOCUMENTS: i64 = 1_500;

/// Each run of a pipeline writes its number into every document.
pub struct Output {
    targets: [Target; 3],
    generation: i64,
    acknowledged: u64,
}

struct Target {
    db: &'static str,
    collection: &'static str,
    replaces: bool,
    /// Whether a complete output was acknowledged or found.
    is_complete: bool,
    /// What may be found in documents: one number, or more while an output is unanswered or where a `$merge` stopped.
    generations: BTreeSet<i64>,
}

impl Output {
    pub fn new() -> Output {
        let target = |db, collection, replaces| Target {
            db,
            collection,
            replaces,
            is_complete: false,
            generations: BTreeSet::new(),
        };
        let targets = [target(DB, "replaced", true), target(OTHER_DB, "replaced", true), target(DB, "merged", false)];
        Output { targets, generation: 0, acknowledged: 0 }
    }
}

impl Work for Output {
    fn name(&self) -> &'static str {
        "output"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        let documents: Vec<Bson> = (0..DOCUMENTS).map(|id| doc! { "_id": id, "of": id % 10 }.into()).collect();
        client.must(DB, &doc! { "insert": "source", "documents": documents })?;
        for target in &self.targets {
            let unique = doc! { "key": { "of": 1, "_id": 1 }, "name": "of_1__id_1", "unique": true };
            let index = doc! { "key": { "generation": 1 }, "name": "generation_1" };
            client.must(target.db, &doc! { "createIndexes": target.collection, "indexes": [unique, index] })?;
        }
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        self.generation += 1;
        let target = &mut self.targets[random.below(3) as usize];
        target.generations.insert(self.generation);
        let into = doc! { "db": target.db, "coll": target.collection };
        let last = if target.replaces {
            doc! { "$out": into }
        } else {
            doc! { "$merge": { "into": into, "on": "_id", "whenMatched": "replace", "whenNotMatched": "insert" } }
        };
        let pipeline = vec![doc! { "$addFields": { "generation": self.generation } }, last];
        session.must(DB, &doc! { "aggregate": "source", "pipeline": pipeline, "cursor": {} })?;
        target.generations = BTreeSet::from([self.generation]);
        target.is_complete = true;
        self.acknowledged += DOCUMENTS as u64;
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        for target in &mut self.targets {
            let (db, collection) = (target.db, target.collection);
            let documents = read_all(client, db, &doc! { "find": collection, "batchSize": 10_000 })?;
            problems.checked += documents.len() as u64;
            let generations: BTreeSet<i64> = documents.iter().filter_map(|d| number(d, "generation")).collect();
            let ids: BTreeSet<i64> = documents.iter().filter_map(|d| number(d, "_id")).collect();
            let is_whole = ids.len() as i64 == DOCUMENTS && documents.len() as i64 == DOCUMENTS;
            let is_one = generations.len() <= 1 && (is_whole || documents.is_empty());
            let fits = (is_whole || !target.is_complete) && (is_one || !target.replaces);
            if !fits || !generations.is_subset(&target.generations) {
                let (count, allowed) = (documents.len(), &target.generations);
                problems.add(format!(
                    "{db}.{collection} has {count} documents of generations {generations:?}; allowed are {allowed:?}"
                ));
            }
            let indexes = read_all(client, db, &doc! { "listIndexes": collection })?;
            if indexes.len() != 3 {
                problems.add(format!("{db}.{collection} has {} indexes instead of 3", indexes.len()));
            }
            target.is_complete = is_whole;
            target.generations = generations;
        }
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}
