//! Orders that are archived of themselves and brought back by writes: each is in exactly one of the two collections.

use std::collections::BTreeMap;

use bson::doc;

use super::{DB, Work, of_writer};
use crate::client::Client;
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all};
use crate::error::Result;
use crate::random::Random;

pub const COLLECTION: &str = "orders";
const DOCUMENTS_MAX: usize = 400;

/// How often its own orders were changed, and whether they are done.
pub struct Orders {
    writer: u64,
    orders: Ledger<(i64, bool)>,
}

impl Orders {
    pub fn new(writer: u64) -> Orders {
        Orders { writer, orders: Ledger::new(writer) }
    }

    fn insert(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let (id, done) = (self.orders.fresh_id(), random.chance(1, 3));
        self.orders.send(id, Some((0, done)));
        let order = doc! { "_id": id, "number": id, "n": 0i64, "done": done };
        session.expect(DB, &doc! { "insert": COLLECTION, "documents": [order] }, "n", 1)?;
        self.orders.acknowledge();
        Ok(())
    }

    fn update(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, (n, mut done))) = self.orders.any(random) else { return self.insert(session, random) };
        if random.chance(1, 2) {
            done = !done;
        }
        self.orders.send(id, Some((n + 1, done)));
        let change = doc! { "$inc": { "n": 1i64 }, "$set": { "done": done } };
        let query = if random.chance(1, 2) {
            doc! { "_id": id }
        } else {
            doc! { "number": id }
        };
        let update = doc! { "q": query, "u": change, "upsert": true };
        session.expect(DB, &doc! { "update": COLLECTION, "updates": [update] }, "nModified", 1)?;
        self.orders.acknowledge();
        Ok(())
    }

    fn delete(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, _)) = self.orders.any(random) else { return Ok(()) };
        self.orders.send(id, None);
        session.expect(DB, &doc! { "delete": COLLECTION, "deletes": [{ "q": { "_id": id }, "limit": 1 }] }, "n", 1)?;
        self.orders.acknowledge();
        Ok(())
    }
}

impl Work for Orders {
    fn name(&self) -> &'static str {
        "orders"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        if self.writer == 0 {
            let index = doc! { "key": { "number": 1 }, "name": "number_1", "unique": true };
            client.must(DB, &doc! { "createIndexes": COLLECTION, "indexes": [index] })?;
        }
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        match random.below(20) {
            _ if self.orders.known.len() > DOCUMENTS_MAX => self.delete(session, random),
            0..6 => self.insert(session, random),
            6..17 => self.update(session, random),
            _ => self.delete(session, random),
        }
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        let find = doc! { "find": COLLECTION, "filter": of_writer(self.writer), "batchSize": 10_000 };
        for document in read_all(client, DB, &find)? {
            let (Ok(id), Some(n), Ok(done)) =
                (document.get_i64("_id"), number(&document, "n"), document.get_bool("done"))
            else {
                problems.add(format!("not an order: {document}"));
                continue;
            };
            if number(&document, "number") != Some(id) || found.insert(id, (n, done)).is_some() {
                problems.add(format!("half or twice: {document}"));
            }
        }
        self.orders.judge(COLLECTION, found, problems);
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.orders.acknowledged
    }
}
