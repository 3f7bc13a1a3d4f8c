//! Arrays in batches: each keeps its elements and their order, also the one that all writers append to.

use std::collections::BTreeMap;

use bson::{Bson, Document, doc};

use super::{DB, Work, of_writer};
use crate::client::Client;
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, read_all};
use crate::error::Result;
use crate::random::Random;

pub const COLLECTION: &str = "lists";
const DOCUMENTS_MAX: usize = 60;
const VALUES: i64 = 40;
/// The document that all writers append to.
const HOT: i64 = 0;
/// How many elements of it a writer lets come together before it takes its own away.
const HOT_MAX: usize = 400;

/// Documents of its own, and its part of a document that all share.
pub struct Lists {
    writer: u64,
    lists: Ledger<Vec<i64>>,
    hot: Ledger<Vec<i64>>,
    next: i64,
}

impl Lists {
    pub fn new(writer: u64) -> Lists {
        Lists { writer, lists: Ledger::new(writer), hot: Ledger::new(writer), next: 0 }
    }

    fn insert(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let id = self.lists.fresh_id();
        let list: Vec<i64> = (0..random.below(45)).map(|_| random.between(0, VALUES)).collect();
        self.lists.send(id, Some(list.clone()));
        session.expect(DB, &doc! { "insert": COLLECTION, "documents": [{ "_id": id, "list": list }] }, "n", 1)?;
        self.lists.acknowledge();
        Ok(())
    }

    fn update(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, mut list)) = self.lists.any(random) else { return self.insert(session, random) };
        let value = random.between(0, VALUES);
        let change = match random.below(8) {
            0..3 => {
                list.push(value);
                doc! { "$push": { "list": value } }
            }
            3 => {
                let at = random.below(list.len() as u64 + 1) as usize;
                list.splice(at..at, [value, value + 1, value + 2]);
                let each = vec![value, value + 1, value + 2];
                doc! { "$push": { "list": { "$each": each, "$position": at as i64 } } }
            }
            4 => {
                list.retain(|other| *other != value);
                doc! { "$pull": { "list": value } }
            }
            5 => {
                if !list.contains(&value) {
                    list.push(value);
                }
                doc! { "$addToSet": { "list": value } }
            }
            6 => {
                list.pop();
                doc! { "$pop": { "list": 1 } }
            }
            _ => {
                list.truncate(15);
                doc! { "$push": { "list": { "$each": [], "$slice": 15 } } }
            }
        };
        self.lists.send(id, Some(list));
        let update = doc! { "q": { "_id": id }, "u": change };
        session.expect(DB, &doc! { "update": COLLECTION, "updates": [update] }, "n", 1)?;
        self.lists.acknowledge();
        Ok(())
    }

    fn delete(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, _)) = self.lists.any(random) else { return Ok(()) };
        self.lists.send(id, None);
        session.expect(DB, &doc! { "delete": COLLECTION, "deletes": [{ "q": { "_id": id }, "limit": 1 }] }, "n", 1)?;
        self.lists.acknowledge();
        Ok(())
    }

    /// Appends to the shared document, or takes all its own elements out of it.
    fn append(&mut self, session: &mut Session) -> Step {
        let mut mine = self.hot.known.get(&HOT).cloned().unwrap_or_default();
        let writer = self.writer as i64;
        let change = if mine.len() > HOT_MAX {
            mine.clear();
            doc! { "$pull": { "list": { "w": writer } } }
        } else {
            self.next += 1;
            mine.push(self.next);
            doc! { "$push": { "list": { "w": writer, "n": self.next } } }
        };
        self.hot.send(HOT, Some(mine));
        let update = doc! { "q": { "_id": HOT }, "u": change };
        session.expect(DB, &doc! { "update": COLLECTION, "updates": [update] }, "nModified", 1)?;
        self.hot.acknowledge();
        Ok(())
    }
}

impl Work for Lists {
    fn name(&self) -> &'static str {
        "lists"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        if self.writer == 0 {
            client.must(DB, &doc! { "insert": COLLECTION, "documents": [{ "_id": HOT, "list": [] }] })?;
            let index = doc! { "key": { "list": 1 }, "name": "list_1" };
            client.must(DB, &doc! { "createIndexes": COLLECTION, "indexes": [index] })?;
        }
        self.hot.known.insert(HOT, Vec::new());
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        match random.below(20) {
            _ if self.lists.known.len() > DOCUMENTS_MAX => self.delete(session, random),
            0..2 => self.insert(session, random),
            2..10 => self.update(session, random),
            10 => self.delete(session, random),
            _ => self.append(session),
        }
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        let find = doc! { "find": COLLECTION, "filter": of_writer(self.writer), "batchSize": 10_000 };
        for document in read_all(client, DB, &find)? {
            let id = document.get_i64("_id")?;
            let list = document.get_array("list")?.iter().filter_map(Bson::as_i64).collect();
            if found.insert(id, list).is_some() {
                problems.add(format!("the list {id} is there twice"));
            }
        }
        // An element is found by it in whichever batch it is.
        let value = 7;
        let by_element = doc! { "$and": [of_writer(self.writer), { "list": value }] };
        let by_element = doc! { "find": COLLECTION, "filter": by_element, "hint": "list_1", "batchSize": 10_000 };
        let mut by_element: Vec<i64> =
            read_all(client, DB, &by_element)?.iter().filter_map(|document| document.get_i64("_id").ok()).collect();
        by_element.sort_unstable();
        let has = |(id, list): (&i64, &Vec<i64>)| list.contains(&value).then_some(*id);
        let expected: Vec<i64> = found.iter().filter_map(has).collect();
        if by_element != expected {
            problems.add(format!("lists with a {value}: the index gives {by_element:?}, the lists say {expected:?}"));
        }
        self.lists.judge(COLLECTION, found, problems);

        let hot = read_all(client, DB, &doc! { "find": COLLECTION, "filter": { "_id": HOT } })?;
        let part = |document: &Document| -> Option<Vec<i64>> {
            let elements = document.get_array("list").ok()?.iter().filter_map(Bson::as_document);
            let mine = elements.filter(|element| element.get_i64("w").ok() == Some(self.writer as i64));
            Some(mine.filter_map(|element| element.get_i64("n").ok()).collect())
        };
        let found = hot.iter().filter_map(part).map(|mine| (HOT, mine)).collect();
        self.hot.judge("the shared list", found, problems);
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.lists.acknowledged + self.hot.acknowledged
    }
}
