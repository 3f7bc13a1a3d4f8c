//! Clients append to lists and read them in transactions; what they saw must be what snapshot isolation allows.
#![allow(clippy::unwrap_used)]

mod checker;
#[path = "../support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use checker::{Op, Outcome, Transaction};
use espalier_value::{ArrayBuf, RawDoc, ValueRef, doc};
use support::client::batch;
use support::session::Failed;
use support::{Client, Random, Session, seconds, serve};

const KEYS: u64 = 6;
const CLIENTS: usize = 12;

fn values(doc: RawDoc<'_>) -> Vec<u64> {
    let list = doc.get("list").unwrap().as_array().unwrap();
    let number = |value| match value {
        ValueRef::Int64(n) => u64::try_from(n).unwrap(),
        other => panic!("{other:?}"),
    };
    list.iter().map(number).collect()
}

fn read(session: &mut Session, client: &mut Client, key: usize) -> Result<Vec<u64>, Failed> {
    let filter = doc! { "_id": key as i32 };
    let reply = session.run(client, "test", doc! { "find": "lists", "filter": &filter })?;
    Ok(batch(&reply).first().map_or_else(Vec::new, |doc| values(*doc)))
}

/// By `update`, or by `findAndModify`, which also reads.
fn append(session: &mut Session, client: &mut Client, key: usize, value: u64, modify: bool) -> Result<(), Failed> {
    let (filter, push) = (doc! { "_id": key as i32 }, doc! { "$push": &doc! { "list": value as i64 } });
    let command = if modify {
        doc! { "findAndModify": "lists", "query": &filter, "update": &push, "upsert": true }
    } else {
        let mut updates = ArrayBuf::new();
        updates.push(&doc! { "q": &filter, "u": &push, "upsert": true });
        doc! { "update": "lists", "updates": &updates }
    };
    session.run(client, "test", command).map(drop)
}

/// One transaction as it went. One whose append or commit was refused has not happened.
fn attempt(
    who: usize,
    session: &mut Session,
    client: &mut Client,
    random: &mut Random,
    next: &AtomicU64,
) -> Transaction {
    session.start();
    let mut ops = Vec::new();
    let mut failed = false;
    for _ in 0..1 + random.below(4) {
        let key = random.below(KEYS) as usize;
        if random.below(2) == 0 {
            match read(session, client, key) {
                Ok(list) => ops.push(Op::Read(key, list)),
                Err(error) => {
                    assert!(error.is_transient(), "{error:?}");
                    failed = true;
                }
            }
        } else {
            let value = next.fetch_add(1, Ordering::Relaxed);
            ops.push(Op::Append(key, value));
            if let Err(error) = append(session, client, key, value, random.below(2) == 0) {
                assert!(error.is_transient(), "{error:?}");
                failed = true;
            }
        }
        if failed {
            break;
        }
    }
    let give_up = !failed && random.below(8) == 0;
    if give_up {
        session.abort(client).unwrap();
    }
    let outcome = match failed || give_up || session.commit(client).is_err() {
        true => Outcome::Aborted,
        false => Outcome::Committed,
    };
    Transaction { session: who, ops, outcome }
}

#[test]
fn a_history_of_appends_is_snapshot_isolated() {
    let server = serve();
    let address = server.local_addr();
    let history = Mutex::new(Vec::new());
    let next = AtomicU64::new(1);
    let ends = Instant::now() + Duration::from_secs_f64(seconds(2.0));
    std::thread::scope(|scope| {
        for who in 0..CLIENTS {
            let (history, next) = (&history, &next);
            scope.spawn(move || {
                let (mut client, mut session) = (Client::connect(address), Session::new());
                let mut random = Random::new(who as u64 + 1);
                let mut own = Vec::new();
                while Instant::now() < ends {
                    own.push(attempt(who, &mut session, &mut client, &mut random, next));
                }
                history.lock().unwrap().extend(own);
            });
        }
    });
    let history = history.into_inner().unwrap();
    let mut client = Client::connect(address);
    let reply = client.ok(doc! { "find": "lists" });
    let end: HashMap<usize, Vec<u64>> = batch(&reply)
        .into_iter()
        .map(|doc| match doc.get("_id") {
            Some(ValueRef::Int32(key)) => (key as usize, values(doc)),
            other => panic!("{other:?}"),
        })
        .collect();
    let committed = history.iter().filter(|transaction| transaction.outcome == Outcome::Committed).count();
    println!("{committed} of {} transactions committed", history.len());
    assert!(committed > 50, "{committed} of {} transactions committed", history.len());
    checker::check(&history, &end).unwrap();
}
