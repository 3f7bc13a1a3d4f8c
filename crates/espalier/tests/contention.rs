//! Many connections want the same document, key or job at once: nothing is lost, nothing is done twice, nobody starves.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use espalier_value::{ValueRef, doc};
use support::{Longest, Numbers, Server, batch, error_code, int, list, number, together};

const CONNECTIONS: usize = 32;
const TIME: Duration = Duration::from_secs(2);

#[test]
fn a_hot_counter_counts_exactly_and_fairly() {
    let server = Server::start(&[]);
    server.connect().ok(doc! { "insert": "c", "documents": &list([doc! { "_id": 1, "n": 0i64 }]) });
    let address = server.address();
    let done = together(CONNECTIONS, move |_| {
        let mut client = support::Client::connect(address);
        let (mut count, mut longest) = (0i64, Longest::default());
        let begun = Instant::now();
        while begun.elapsed() < TIME {
            let update = doc! { "q": &doc! { "_id": 1 }, "u": &doc! { "$inc": &doc! { "n": 1i64 } } };
            let reply = longest.time(|| client.ok(doc! { "update": "c", "updates": &list([update]) }));
            assert_eq!((int(&reply, "n"), int(&reply, "nModified"), error_code(&reply)), (1, 1, None));
            count += 1;
        }
        (count, longest.0)
    });
    let total: i64 = done.iter().map(|(count, _)| count).sum();
    let reply = server.connect().ok(doc! { "find": "c" });
    assert_eq!(number(batch(&reply)[0], "n"), total);
    let (least, most) = (done.iter().map(|d| d.0).min().unwrap(), done.iter().map(|d| d.0).max().unwrap());
    let longest = done.iter().map(|d| d.1).max().unwrap();
    assert!(least * 10 >= most, "one connection did {least}, another {most}");
    assert!(longest < TIME, "one update took {longest:?}");
    server.check(&["c"]);
}

#[test]
fn upserts_of_the_same_keys_make_one_document_each() {
    const KEYS: u64 = 50;
    let server = Server::start(&[]);
    let index = doc! { "key": &doc! { "key": 1 }, "name": "key_1", "unique": true };
    server.connect().ok(doc! { "createIndexes": "by_key", "indexes": &list([index]) });
    let address = server.address();
    let upserted = together(CONNECTIONS, move |me| {
        let (mut client, mut numbers) = (support::Client::connect(address), Numbers(me as u64));
        let (mut made, mut total) = (0i64, 0i64);
        let begun = Instant::now();
        while begun.elapsed() < TIME {
            let key = numbers.below(KEYS) as i64;
            // By `_id`, and by a field with a unique index.
            let (collection, field) = if numbers.below(2) == 0 { ("by_id", "_id") } else { ("by_key", "key") };
            let mut filter = espalier_value::DocBuf::new();
            filter.append(field, key);
            let update = doc! { "q": &filter, "u": &doc! { "$inc": &doc! { "n": 1i64 } }, "upsert": true };
            let reply = client.ok(doc! { "update": collection, "updates": &list([update]) });
            assert_eq!((int(&reply, "n"), error_code(&reply)), (1, None), "{reply:?}");
            made += i64::from(reply.as_raw().get("upserted").is_some());
            total += 1;
        }
        (made, total)
    });
    let mut documents = 0;
    let mut counted = 0;
    for (collection, field) in [("by_id", "_id"), ("by_key", "key")] {
        let reply = server.connect().ok(doc! { "find": collection, "batchSize": 1000 });
        let mut seen = BTreeMap::new();
        for doc in batch(&reply) {
            counted += number(doc, "n");
            assert!(seen.insert(number(doc, field), ()).is_none(), "{doc:?} is there twice");
        }
        documents += seen.len() as i64;
    }
    assert_eq!(upserted.iter().map(|u| u.0).sum::<i64>(), documents, "each was made once");
    assert_eq!(upserted.iter().map(|u| u.1).sum::<i64>(), counted, "each upsert counted");
    server.check(&["by_id", "by_key"]);
}

#[test]
fn a_unique_key_has_one_winner() {
    const KEYS: i64 = 150;
    let server = Server::start(&[]);
    let index = doc! { "key": &doc! { "key": 1 }, "name": "key_1", "unique": true };
    server.connect().ok(doc! { "createIndexes": "c", "indexes": &list([index]) });
    let address = server.address();
    let won = together(CONNECTIONS, move |me| {
        let mut client = support::Client::connect(address);
        let mut won = Vec::new();
        for key in 0..KEYS {
            let doc = doc! { "_id": key * 1000 + me as i64, "key": key, "by": me as i32 };
            let reply = client.ok(doc! { "insert": "c", "documents": &list([doc]) });
            match error_code(&reply) {
                None => won.push(key),
                Some(code) => assert_eq!(code, 11000, "{reply:?}"),
            }
        }
        won
    });
    let mut keys: Vec<i64> = won.into_iter().flatten().collect();
    keys.sort_unstable();
    assert_eq!(keys, (0..KEYS).collect::<Vec<_>>());
    assert_eq!(i64::from(int(&server.connect().ok(doc! { "count": "c" }), "n")), KEYS);
    server.check(&["c"]);
}

#[test]
fn a_job_is_taken_once() {
    const JOBS: i64 = 1_000;
    let server = Server::start(&[]);
    let mut client = server.connect();
    let index = doc! { "key": &doc! { "state": 1, "_id": 1 }, "name": "state_1__id_1" };
    client.ok(doc! { "createIndexes": "jobs", "indexes": &list([index]) });
    let jobs = list((0..JOBS).map(|id| doc! { "_id": id, "state": "new" }));
    client.ok(doc! { "insert": "jobs", "documents": &jobs });
    let address = server.address();
    let taken = together(CONNECTIONS, move |me| {
        let mut client = support::Client::connect(address);
        let mut taken = Vec::new();
        loop {
            let change = doc! { "$set": &doc! { "state": "taken", "by": me as i32 }, "$inc": &doc! { "times": 1 } };
            let reply = client.ok(doc! {
                "findAndModify": "jobs", "query": &doc! { "state": "new" }, "sort": &doc! { "_id": 1 },
                "update": &change, "new": true,
            });
            match reply.as_raw().get("value") {
                Some(ValueRef::Document(job)) => {
                    assert_eq!((number(job, "by"), number(job, "times")), (me as i64, 1));
                    taken.push(number(job, "_id"));
                }
                _ => return taken,
            }
        }
    });
    let mut all: Vec<i64> = taken.into_iter().flatten().collect();
    all.sort_unstable();
    assert_eq!(all, (0..JOBS).collect::<Vec<_>>());
    let left = client.ok(doc! { "count": "jobs", "query": &doc! { "times": &doc! { "$ne": 1 } } });
    assert_eq!(int(&left, "n"), 0);
    server.check(&["jobs"]);
}
