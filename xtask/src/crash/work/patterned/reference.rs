//! Invoices that have their customer's name, as it is and as it was; a customer has so many that the last of them get a new
//! name in the background.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bson::{Document, doc};

use super::{DB, Work, of_writer};
use crate::client::Client;
use crate::crash::ledger::{Ledger, first_id};
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all};
use crate::error::Result;
use crate::random::Random;

const CUSTOMERS: &str = "customers";
const INVOICES: &str = "invoices";
/// Customers of each writer.
const CUSTOMERS_COUNT: i64 = 2;
const INVOICES_MAX: usize = 160;
/// Invoices that get a name with the customer; the others get it later.
const IN_COMMIT: i32 = 10;
const CAUGHT_UP_MAX: Duration = Duration::from_secs(30);

/// The name (a number) of each of its customers, and of each invoice the customer and the name that it had then.
pub struct Invoices {
    writer: u64,
    customers: Ledger<i64>,
    invoices: Ledger<(i64, i64)>,
}

impl Invoices {
    pub fn new(writer: u64) -> Invoices {
        Invoices { writer, customers: Ledger::new(writer), invoices: Ledger::new(writer) }
    }

    fn customer(&self, random: &mut Random) -> (i64, i64) {
        let id = first_id(self.writer) + random.between(0, CUSTOMERS_COUNT - 1);
        (id, self.customers.known.get(&id).copied().unwrap_or(0))
    }

    fn insert(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let (id, (customer, name)) = (self.invoices.fresh_id(), self.customer(random));
        self.invoices.send(id, Some((customer, name)));
        let invoice = doc! { "_id": id, "customerId": customer };
        session.expect(DB, &doc! { "insert": INVOICES, "documents": [invoice] }, "n", 1)?;
        self.invoices.acknowledge();
        Ok(())
    }

    /// The invoice is another customer's.
    fn hand_over(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, (customer, _))) = self.invoices.any(random) else { return Ok(()) };
        let (other, name) = self.customer(random);
        if other == customer {
            return Ok(());
        }
        self.invoices.send(id, Some((other, name)));
        let update = doc! { "q": { "_id": id }, "u": { "$set": { "customerId": other } } };
        session.expect(DB, &doc! { "update": INVOICES, "updates": [update] }, "nModified", 1)?;
        self.invoices.acknowledge();
        Ok(())
    }

    fn rename(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let (id, name) = self.customer(random);
        self.customers.send(id, Some(name + 1));
        let update = doc! { "q": { "_id": id }, "u": { "$inc": { "name": 1i64 } } };
        session.expect(DB, &doc! { "update": CUSTOMERS, "updates": [update] }, "nModified", 1)?;
        self.customers.acknowledge();
        Ok(())
    }

    fn delete(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, _)) = self.invoices.any(random) else { return Ok(()) };
        self.invoices.send(id, None);
        session.expect(DB, &doc! { "delete": INVOICES, "deletes": [{ "q": { "_id": id }, "limit": 1 }] }, "n", 1)?;
        self.invoices.acknowledge();
        Ok(())
    }

    fn invoices(&self, client: &mut Client) -> Result<Vec<Document>> {
        read_all(client, DB, &doc! { "find": INVOICES, "filter": of_writer(self.writer), "batchSize": 10_000 })
    }

    /// Invoices whose copy is not the name that their customer has.
    fn behind(&self, client: &mut Client) -> Result<Vec<Document>> {
        let is_behind = |invoice: &Document| {
            let customer = number(invoice, "customerId").and_then(|id| self.customers.known.get(&id)).copied();
            copy(invoice, "customer") != customer
        };
        Ok(self.invoices(client)?.into_iter().filter(is_behind).collect())
    }
}

fn copy(invoice: &Document, into: &str) -> Option<i64> {
    invoice.get_document(into).ok().and_then(|copies| number(copies, "name"))
}

impl Work for Invoices {
    fn name(&self) -> &'static str {
        "invoices"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        if self.writer == 0 {
            let (from, on) = (CUSTOMERS, doc! { "customerId": "_id" });
            let follow = doc! {
                "from": from, "on": &on, "into": "customer", "fields": ["name"], "inCommit": IN_COMMIT,
            };
            let snapshot = doc! { "from": from, "on": on, "into": "then", "fields": ["name"], "mode": "snapshot" };
            let patterns = vec![doc! { "reference": follow }, doc! { "reference": snapshot }];
            client.must(DB, &doc! { "create": INVOICES, "patterns": patterns })?;
        }
        for id in (0..CUSTOMERS_COUNT).map(|number| first_id(self.writer) + number) {
            client.must(DB, &doc! { "insert": CUSTOMERS, "documents": [{ "_id": id, "name": 0i64 }] })?;
            self.customers.known.insert(id, 0);
        }
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        match random.below(20) {
            _ if self.invoices.known.len() > INVOICES_MAX => self.delete(session, random),
            0..12 => self.insert(session, random),
            12..15 => self.hand_over(session, random),
            15..18 => self.rename(session, random),
            _ => self.delete(session, random),
        }
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let find = doc! { "find": CUSTOMERS, "filter": of_writer(self.writer) };
        let customers = read_all(client, DB, &find)?;
        let named = |customer: &Document| Some((number(customer, "_id")?, number(customer, "name")?));
        self.customers.judge(CUSTOMERS, customers.iter().filter_map(named).collect(), problems);
        let mut found = BTreeMap::new();
        for invoice in self.invoices(client)? {
            let state = number(&invoice, "customerId").zip(copy(&invoice, "then"));
            // A copy may be behind, but is never of a name that comes later.
            let name = state.and_then(|(customer, _)| self.customers.known.get(&customer).copied());
            match (state, copy(&invoice, "customer")) {
                (Some(state), Some(has)) if name.is_some_and(|name| has <= name) => {
                    found.insert(invoice.get_i64("_id")?, state);
                }
                _ => problems.add(format!("the customer's name is {name:?}, and the invoice {invoice}")),
            }
        }
        self.invoices.judge(INVOICES, found, problems);
        Ok(())
    }

    fn settle(&mut self, client: &mut Client, problems: &mut Problems) -> Result<bool> {
        let since = Instant::now();
        loop {
            let behind = self.behind(client)?;
            if behind.is_empty() {
                return Ok(false);
            }
            if since.elapsed() > CAUGHT_UP_MAX {
                behind.iter().for_each(|invoice| problems.add(format!("has not its customer's name: {invoice}")));
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn acknowledged(&self) -> u64 {
        self.customers.acknowledged + self.invoices.acknowledged
    }
}
