//! Money moves between accounts in transactions, and counters go up by retryable writes. What got no answer is sent again
//! after the restart: it is answered as it went, happens once, and the total is always the same.

use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};

use super::Work;
use crate::client::{Client, is_ok};
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, code, number, read_all, wrong};
use crate::error::Result;
use crate::random::Random;

const DB: &str = "crash_transfer";
const ACCOUNTS: u64 = 40;
const EACH: i64 = 1_000;
pub const WRITERS: u64 = 4;

/// Write conflict, and a transaction that is no longer there.
const AGAIN: [i32; 2] = [112, 251];

/// Documents of `accounts`, shared by all writers; a document of `log` of its own, which says what it has done.
pub struct Transfer {
    writer: u64,
    txn_number: i64,
    committed: i64,
    retried: i64,
    in_flight: Option<InFlight>,
}

#[derive(Clone, Copy)]
enum InFlight {
    Commit,
    Retryable,
}

impl Transfer {
    pub fn new(writer: u64) -> Transfer {
        Transfer { writer, txn_number: 0, committed: 0, retried: 0, in_flight: None }
    }

    fn signed(&self, mut command: Document) -> Document {
        let mut id = vec![7; 16];
        id[8..].copy_from_slice(&self.writer.to_be_bytes());
        command.insert("lsid", doc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes: id } });
        command.insert("txnNumber", self.txn_number);
        command
    }

    fn commit(&self) -> Document {
        let mut commit = self.signed(doc! { "commitTransaction": 1 });
        commit.insert("autocommit", false);
        commit
    }

    fn retryable(&self) -> Document {
        let update = doc! { "q": { "_id": self.writer as i64 }, "u": { "$inc": { "retried": 1i64 } } };
        self.signed(doc! { "update": "log", "updates": [update] })
    }

    fn transfer(&mut self, session: &mut Session, random: &mut Random) -> Step {
        self.txn_number += 1;
        let (from, to) = (random.below(ACCOUNTS) as i64, random.below(ACCOUNTS) as i64);
        let amount = random.between(1, 10);
        let own = self.writer as i64;
        let steps = [("accounts", from, "n", -amount), ("accounts", to, "n", amount), ("log", own, "committed", 1)];
        for (at, (collection, id, field, by)) in steps.into_iter().enumerate() {
            let update = doc! { "q": { "_id": id }, "u": { "$inc": { field: by } } };
            let mut command = self.signed(doc! { "update": collection, "updates": [update] });
            if at == 0 {
                command.insert("startTransaction", true);
            }
            command.insert("autocommit", false);
            let reply = session.run(DB, &command)?;
            match code(&reply) {
                Some(code) if AGAIN.contains(&code) => return Ok(()),
                None if is_ok(&reply) && number(&reply, "n") == Some(1) => {}
                _ => return Err(wrong(&command, &reply)),
            }
        }
        self.in_flight = Some(InFlight::Commit);
        let reply = session.run("admin", &self.commit())?;
        self.in_flight = None;
        match code(&reply) {
            None if is_ok(&reply) => self.committed += 1,
            Some(code) if AGAIN.contains(&code) => {}
            _ => return Err(wrong(&self.commit(), &reply)),
        }
        Ok(())
    }
}

impl Work for Transfer {
    fn name(&self) -> &'static str {
        "transfer"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        if self.writer == 0 {
            let accounts: Vec<Document> = (0..ACCOUNTS).map(|id| doc! { "_id": id as i64, "n": EACH }).collect();
            client.must(DB, &doc! { "insert": "accounts", "documents": accounts })?;
        }
        let log = doc! { "_id": self.writer as i64, "committed": 0i64, "retried": 0i64 };
        client.must(DB, &doc! { "insert": "log", "documents": [log] })?;
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        if random.chance(2, 3) {
            return self.transfer(session, random);
        }
        self.txn_number += 1;
        self.in_flight = Some(InFlight::Retryable);
        session.expect(DB, &self.retryable(), "nModified", 1)?;
        self.in_flight = None;
        self.retried += 1;
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        match self.in_flight.take() {
            None => {}
            Some(InFlight::Commit) => {
                let reply = client.run("admin", &self.commit())?;
                match code(&reply) {
                    None if is_ok(&reply) => self.committed += 1,
                    Some(251) => {}
                    _ => problems.add(format!("a commit sent again: {reply}")),
                }
            }
            Some(InFlight::Retryable) => {
                let reply = client.run(DB, &self.retryable())?;
                match is_ok(&reply) && number(&reply, "nModified") == Some(1) {
                    true => self.retried += 1,
                    false => problems.add(format!("a write sent again: {reply}")),
                }
            }
        }
        let filter = doc! { "_id": self.writer as i64 };
        for log in read_all(client, DB, &doc! { "find": "log", "filter": filter })? {
            let (committed, retried) = (number(&log, "committed"), number(&log, "retried"));
            if (committed, retried) != (Some(self.committed), Some(self.retried)) {
                let expected = (self.committed, self.retried);
                problems.add(format!("writer {}: committed and retried {expected:?}, stored {log}", self.writer));
            }
            problems.checked += 1;
        }
        let accounts = read_all(client, DB, &doc! { "find": "accounts" })?;
        let total: i64 = accounts.iter().filter_map(|account| number(account, "n")).sum();
        if total != ACCOUNTS as i64 * EACH {
            problems.add(format!("the accounts hold {total} together"));
        }
        problems.checked += accounts.len() as u64;
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        (self.committed + self.retried) as u64
    }
}
