//! Small documents of several writers in one collection: inserted, increased, deleted, and keys of a unique index that
//! the writers compete for; each writer also creates and drops an index of its own.

use std::collections::{BTreeMap, BTreeSet};

use bson::{Bson, Document, doc};

use super::Work;
use crate::client::{Client, is_ok};
use crate::crash::ledger::{Ledger, first_id};
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, code, read_all, wrong};
use crate::error::Result;
use crate::random::Random;

pub const WRITERS: u64 = 4;
const DB: &str = "crash";
/// Keys for which the writers compete in the collection with the unique index.
const KEYS: u64 = 2_000;
const BATCH_MAX: u64 = 20;
/// More than this are not kept, so that a long run checks as fast at its end as at its beginning.
const DOCUMENTS_MAX: usize = 4_000;

pub struct Documents {
    writer: u64,
    /// Documents of the collection `main`: their counter.
    main: Ledger<i64>,
    /// Documents of the collection `unique`: their key.
    unique: Ledger<i64>,
    /// Whether the index this writer toggles exists; `None` while unknown.
    index: Option<bool>,
    indexes_toggled: u64,
}

impl Documents {
    pub fn new(writer: u64) -> Documents {
        let (main, unique) = (Ledger::new(writer), Ledger::new(writer));
        Documents { writer, main, unique, index: Some(false), indexes_toggled: 0 }
    }

    fn insert(&mut self, session: &mut Session, count: u64) -> Step {
        let documents: Vec<Bson> = (0..count)
            .map(|_| {
                let id = self.main.fresh_id();
                self.main.send(id, Some(0));
                doc! { "_id": id, "n": 0i64, "mirror": 0i64, "writer": self.writer as i64, "fill": "x".repeat(100) }
                    .into()
            })
            .collect();
        session.expect(DB, &doc! { "insert": "main", "documents": documents }, "n", count)?;
        self.main.acknowledge();
        Ok(())
    }

    /// Two fields go up together: a reader must never see one without the other.
    fn increment(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, n)) = self.main.any(random) else { return self.insert(session, 1) };
        let by = random.between(1, 5);
        self.main.send(id, Some(n + by));
        let update = doc! { "q": { "_id": id }, "u": { "$inc": { "n": by, "mirror": by } } };
        session.expect(DB, &doc! { "update": "main", "updates": [update] }, "nModified", 1)?;
        self.main.acknowledge();
        Ok(())
    }

    fn delete(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, _)) = self.main.any(random) else { return Ok(()) };
        self.main.send(id, None);
        session.expect(DB, &doc! { "delete": "main", "deletes": [{ "q": { "_id": id }, "limit": 1 }] }, "n", 1)?;
        self.main.acknowledge();
        Ok(())
    }

    /// Takes a key that another writer may hold, or gives one back.
    fn compete(&mut self, session: &mut Session, random: &mut Random) -> Step {
        if random.chance(1, 3)
            && let Some((id, _)) = self.unique.any(random)
        {
            self.unique.send(id, None);
            let delete = doc! { "delete": "unique", "deletes": [{ "q": { "_id": id }, "limit": 1 }] };
            session.expect(DB, &delete, "n", 1)?;
            self.unique.acknowledge();
            return Ok(());
        }
        let (id, key) = (self.unique.fresh_id(), random.below(KEYS) as i64);
        self.unique.send(id, Some(key));
        let insert = doc! { "insert": "unique", "documents": [{ "_id": id, "key": key }] };
        let reply = session.run(DB, &insert)?;
        match code(&reply) {
            None if is_ok(&reply) => self.unique.acknowledge(),
            Some(11000) => self.unique.refuse(),
            _ => return Err(wrong(&insert, &reply)),
        }
        Ok(())
    }

    /// The index that this writer creates and drops.
    fn index_name(&self) -> String {
        format!("toggled{}_1", self.writer)
    }

    fn toggle_index(&mut self, session: &mut Session) -> Step {
        let (name, exists) = (self.index_name(), self.index == Some(true));
        self.index = None;
        let command = if exists {
            doc! { "dropIndexes": "main", "index": &name }
        } else {
            let field = format!("toggled{}", self.writer);
            doc! { "createIndexes": "main", "indexes": [{ "key": { field: 1, "n": -1 }, "name": &name }] }
        };
        let reply = session.run(DB, &command)?;
        // Another index build on the collection may abort a drop or a build; then nothing has changed.
        let conflict = matches!(code(&reply), Some(112 | 276 | 11602));
        if !is_ok(&reply) && !conflict {
            return Err(wrong(&command, &reply));
        }
        self.indexes_toggled += u64::from(is_ok(&reply));
        self.index = Some(if is_ok(&reply) { !exists } else { exists });
        Ok(())
    }

    /// An acknowledged index is there, a dropped one is not; one in flight is from now on what it is.
    fn check_index(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let indexes = read_all(client, DB, &doc! { "listIndexes": "main" })?;
        let name = self.index_name();
        let exists = indexes.iter().any(|index| index.get_str("name").ok() == Some(&name));
        if self.index.is_some_and(|known| known != exists) {
            problems.add(format!("index {name}: acknowledged {:?}, found {exists}", self.index));
        }
        self.index = Some(exists);
        Ok(())
    }

    fn own(&self, collection: &str) -> Document {
        let ids = doc! { "$gte": first_id(self.writer), "$lt": first_id(self.writer + 1) };
        doc! { "find": collection, "filter": { "_id": ids }, "batchSize": 10_000 }
    }
}

impl Work for Documents {
    fn name(&self) -> &'static str {
        "documents"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        if self.writer > 0 {
            return Ok(());
        }
        client.must(DB, &doc! { "create": "main" })?;
        let index = doc! { "key": { "key": 1 }, "name": "key_1", "unique": true };
        client.must(DB, &doc! { "createIndexes": "unique", "indexes": [index] })?;
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        if self.main.known.len() > DOCUMENTS_MAX {
            return self.delete(session, random);
        }
        match random.below(100) {
            0..30 => self.insert(session, 1),
            30..40 => self.insert(session, 1 + random.below(BATCH_MAX)),
            40..75 => self.increment(session, random),
            75..83 => self.delete(session, random),
            83..98 => self.compete(session, random),
            _ => self.toggle_index(session),
        }
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let main = read_all(client, DB, &self.own("main"))?;
        self.main.judge("main", main_states(&main, problems), problems);
        let unique = read_all(client, DB, &self.own("unique"))?;
        self.unique.judge("unique", unique_states(&unique, problems), problems);
        if self.writer == 0 {
            // Keys of one writer against those of the others.
            let all = read_all(client, DB, &doc! { "find": "unique", "batchSize": 10_000 })?;
            unique_states(&all, problems);
        }
        self.check_index(client, problems)
    }

    fn acknowledged(&self) -> u64 {
        self.main.acknowledged + self.unique.acknowledged + self.indexes_toggled
    }
}

pub fn main_states(documents: &[Document], problems: &mut Problems) -> BTreeMap<i64, i64> {
    let mut states = BTreeMap::new();
    for document in documents {
        match (document.get_i64("_id"), document.get_i64("n"), document.get_i64("mirror"), document.get_str("fill")) {
            (Ok(id), Ok(n), Ok(mirror), Ok(fill)) if n == mirror && fill.len() == 100 => {
                if states.insert(id, n).is_some() {
                    problems.add(format!("main {id} is there twice"));
                }
            }
            _ => problems.add(format!("half applied: {document}")),
        }
    }
    states
}

pub fn unique_states(documents: &[Document], problems: &mut Problems) -> BTreeMap<i64, i64> {
    let (mut states, mut keys) = (BTreeMap::new(), BTreeSet::new());
    for document in documents {
        let (Ok(id), Ok(key)) = (document.get_i64("_id"), document.get_i64("key")) else {
            problems.add(format!("half applied: {document}"));
            continue;
        };
        states.insert(id, key);
        if !keys.insert(key) {
            problems.add(format!("the unique key {key} is there twice"));
        }
    }
    states
}
