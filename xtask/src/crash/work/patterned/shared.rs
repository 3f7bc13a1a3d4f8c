//! Tenants in one collection: all use the same `_id`s and numbers, and none sees another's.

use std::collections::BTreeMap;

use bson::doc;

use super::{DB, Work};
use crate::client::Client;
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all};
use crate::error::Result;
use crate::random::Random;

const PHYSICAL: &str = "items";
const DOCUMENTS_MAX: usize = 300;

/// One tenant's items.
pub struct Items {
    tenant: u64,
    name: String,
    items: Ledger<i64>,
}

impl Items {
    pub fn new(tenant: u64) -> Items {
        // The ledger is the first writer's for all: every tenant has the same `_id`s.
        Items { tenant, name: format!("tenant_{tenant}_items"), items: Ledger::new(0) }
    }
}

impl Work for Items {
    fn name(&self) -> &'static str {
        "items"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        if self.tenant == 0 {
            let shared = doc! { "shared": { "discriminator": "tenant", "name": "tenant_{tenant}_items" } };
            client.must(DB, &doc! { "create": PHYSICAL, "patterns": [shared] })?;
            let index = doc! { "key": { "number": 1 }, "name": "number_1", "unique": true };
            client.must(DB, &doc! { "createIndexes": &self.name, "indexes": [index] })?;
        }
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let any = self.items.any(random);
        match (random.below(10), any) {
            (0..3, Some((id, _))) if self.items.known.len() > DOCUMENTS_MAX / 2 => {
                self.items.send(id, None);
                let delete = doc! { "delete": &self.name, "deletes": [{ "q": { "_id": id }, "limit": 1 }] };
                session.expect(DB, &delete, "n", 1)?;
            }
            (3..8, Some((id, n))) => {
                self.items.send(id, Some(n + 1));
                let update = doc! { "q": { "_id": id }, "u": { "$inc": { "n": 1i64 } } };
                session.expect(DB, &doc! { "update": &self.name, "updates": [update] }, "nModified", 1)?;
            }
            (_, Some((id, _))) if self.items.known.len() > DOCUMENTS_MAX => {
                self.items.send(id, None);
                let delete = doc! { "delete": &self.name, "deletes": [{ "q": { "number": id }, "limit": 1 }] };
                session.expect(DB, &delete, "n", 1)?;
            }
            _ => {
                let id = self.items.fresh_id();
                self.items.send(id, Some(0));
                let item = doc! { "_id": id, "number": id, "n": 0i64 };
                session.expect(DB, &doc! { "insert": &self.name, "documents": [item] }, "n", 1)?;
            }
        }
        self.items.acknowledge();
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        let tenant = self.tenant.to_string();
        for document in read_all(client, DB, &doc! { "find": &self.name, "batchSize": 10_000 })? {
            let (Ok(id), Some(n)) = (document.get_i64("_id"), number(&document, "n")) else {
                problems.add(format!("not an item: {document}"));
                continue;
            };
            let is_whole = number(&document, "number") == Some(id) && document.get_str("tenant").ok() == Some(&*tenant);
            if !is_whole || found.insert(id, n).is_some() {
                problems.add(format!("half, twice or another's: {document}"));
            }
        }
        let stored = doc! { "find": PHYSICAL, "filter": { "tenant": &tenant }, "batchSize": 10_000 };
        let stored = read_all(client, DB, &stored)?.len();
        if stored != found.len() {
            problems.add(format!("the tenant {tenant} has {} documents, and {stored} are stored", found.len()));
        }
        self.items.judge(&self.name, found, problems);
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.items.acknowledged
    }
}
