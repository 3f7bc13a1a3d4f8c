//! A session of a client: its id, its numbers, and transactions that are tried again as drivers do.

use std::sync::atomic::{AtomicU64, Ordering};

use espalier_value::{DocBuf, ValueRef, doc};

use super::Client;

static NEXT: AtomicU64 = AtomicU64::new(1);

pub struct Session {
    id: [u8; 16],
    pub number: i64,
    started: bool,
}

/// Why a command of a transaction failed.
#[derive(Debug)]
pub struct Failed {
    pub code: i32,
    pub labels: Vec<String>,
    pub reply: DocBuf,
}

impl Session {
    pub fn new() -> Session {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        id[8..].copy_from_slice(&std::process::id().to_be_bytes().repeat(2));
        Session { id, number: 0, started: true }
    }

    /// Begins the next transaction with its next command.
    pub fn start(&mut self) {
        self.number += 1;
        self.started = false;
    }

    pub fn lsid(&self) -> DocBuf {
        doc! { "id": ValueRef::Binary(4, &self.id) }
    }

    fn sign(&mut self, command: &mut DocBuf) {
        command.append("lsid", &self.lsid()).append("txnNumber", self.number);
    }

    /// A command of the transaction.
    pub fn run(&mut self, client: &mut Client, db: &str, mut command: DocBuf) -> Result<DocBuf, Failed> {
        self.sign(&mut command);
        if !std::mem::replace(&mut self.started, true) {
            command.append("startTransaction", true);
        }
        command.append("autocommit", false);
        check(client.run_on(db, command))
    }

    pub fn commit(&mut self, client: &mut Client) -> Result<(), Failed> {
        self.run(client, "admin", doc! { "commitTransaction": 1 }).map(drop)
    }

    pub fn abort(&mut self, client: &mut Client) -> Result<(), Failed> {
        self.run(client, "admin", doc! { "abortTransaction": 1 }).map(drop)
    }

    /// A retryable write with the current number.
    pub fn retryable(&mut self, mut command: DocBuf) -> DocBuf {
        self.sign(&mut command);
        command
    }

    /// Runs a transaction until it commits, as the drivers' `withTransaction` does.
    pub fn transact<T>(
        &mut self,
        client: &mut Client,
        mut body: impl FnMut(&mut Session, &mut Client) -> Result<T, Failed>,
    ) -> T {
        loop {
            self.start();
            let done = body(self, client).and_then(|value| self.commit(client).map(|()| value));
            match done {
                Ok(value) => return value,
                Err(failed) if failed.is_transient() => {
                    // Aborting one that has been aborted already changes nothing.
                    let _ = self.abort(client);
                }
                Err(failed) => panic!("{failed:?}"),
            }
        }
    }
}

impl Failed {
    pub fn is_transient(&self) -> bool {
        self.labels.iter().any(|label| label == "TransientTransactionError")
    }
}

/// A reply of a command that may fail, with its write errors.
pub fn check(reply: DocBuf) -> Result<DocBuf, Failed> {
    let raw = reply.as_raw();
    if matches!(raw.get("ok"), Some(ValueRef::Double(1.0))) && raw.get("writeErrors").is_none() {
        return Ok(reply);
    }
    let labels = match raw.get("errorLabels") {
        Some(ValueRef::Array(labels)) => labels
            .iter()
            .filter_map(|label| match label {
                ValueRef::String(label) => Some(label.to_owned()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    let code = match raw.get("code") {
        Some(ValueRef::Int32(code)) => code,
        _ => 0,
    };
    Err(Failed { code, labels, reply })
}
