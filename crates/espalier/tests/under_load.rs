//! Indexes are built, collections renamed and dropped, commands and cursors killed while others read and write.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use espalier_value::{ArrayBuf, DocBuf, RawDoc, ValueRef, doc};
use support::{Client, Numbers, Server, batch, cursor_id, error_code, int, list, number, together};

const TIME: Duration = Duration::from_secs(3);

/// All documents of a cursor whose first batch is already there.
fn rest(client: &mut Client, collection: &str, first: &DocBuf, mut each: impl FnMut(RawDoc<'_>)) -> Option<i32> {
    batch(first).into_iter().for_each(&mut each);
    let mut id = cursor_id(first);
    while id != 0 {
        let reply = client.run(doc! { "getMore": id, "collection": collection, "batchSize": 37 });
        if let Some(code) = error_code(&reply) {
            return Some(code);
        }
        batch(&reply).into_iter().for_each(&mut each);
        id = cursor_id(&reply);
    }
    None
}

fn index_names(client: &mut Client, collection: &str) -> Vec<String> {
    let reply = client.ok(doc! { "listIndexes": collection });
    let name = |index: RawDoc<'_>| match index.get("name") {
        Some(ValueRef::String(name)) => name.to_owned(),
        other => panic!("{other:?}"),
    };
    batch(&reply).into_iter().map(name).collect()
}

#[test]
fn an_index_built_under_load_is_complete() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    for first in (0..6_000i64).step_by(1_000) {
        let docs = list((first..first + 1_000).map(|id| doc! { "_id": id, "a": id % 97, "n": 0i64 }));
        client.ok(doc! { "insert": "c", "documents": &docs });
    }
    let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
    let writers = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            together(16, move |me| {
                let (mut client, mut numbers) = (Client::connect(address), Numbers(me as u64));
                let mut next = 1_000_000 * (me as i64 + 1);
                while !stop.load(Ordering::Relaxed) {
                    let id = numbers.below(6_000) as i64;
                    let a = numbers.below(97) as i64;
                    let reply = match numbers.below(4) {
                        0 => client.run(
                            doc! { "delete": "c", "deletes": &list([doc! { "q": &doc! { "_id": id }, "limit": 1 }]) },
                        ),
                        1 => {
                            next += 1;
                            client.run(
                                doc! { "insert": "c", "documents": &list([doc! { "_id": next, "a": a, "n": 1i64 }]) },
                            )
                        }
                        _ => {
                            let change = doc! { "$set": &doc! { "a": a }, "$inc": &doc! { "n": 1i64 } };
                            let update = doc! { "q": &doc! { "_id": id }, "u": &change };
                            client.run(doc! { "update": "c", "updates": &list([update]) })
                        }
                    };
                    assert_eq!(error_code(&reply), None, "{reply:?}");
                }
            })
        }
    });
    for (name, key) in [("a_1", doc! { "a": 1 }), ("a_1_n_-1", doc! { "a": 1, "n": -1 }), ("n_1", doc! { "n": 1 })] {
        let index = doc! { "key": &key, "name": name };
        client.ok(doc! { "createIndexes": "c", "indexes": &list([index]) });
    }
    client.ok(doc! { "dropIndexes": "c", "index": "a_1" });
    client.ok(doc! { "createIndexes": "c", "indexes": &list([doc! { "key": &doc! { "a": 1 }, "name": "a_1" }]) });
    stop.store(true, Ordering::Relaxed);
    writers.join().unwrap();
    let count = int(&client.ok(doc! { "count": "c" }), "n");
    for index in ["_id_", "a_1", "a_1_n_-1", "n_1"] {
        let mut seen = BTreeSet::new();
        let first = client.ok(doc! { "find": "c", "hint": index });
        assert_eq!(rest(&mut client, "c", &first, |doc| assert!(seen.insert(number(doc, "_id")))), None);
        assert_eq!(seen.len() as i32, count, "{index}");
    }
    server.check(&["c"]);
}

#[test]
fn a_unique_index_is_whole_or_refused_when_duplicates_race_in() {
    let server = Server::start(&[]);
    let address = server.address();
    let (mut made, mut refused) = (0, 0);
    for round in 0..12 {
        let name = format!("c{round}");
        let mut client = server.connect();
        client.ok(doc! { "insert": &*name, "documents": &list((0..500i64).map(|id| doc! { "_id": id, "key": id })) });
        let racer = std::thread::spawn({
            let name = name.clone();
            move || {
                let mut client = Client::connect(address);
                let mut last = 0;
                // In some rounds the duplicate is there before, in some after, in some while the index is built.
                std::thread::sleep(Duration::from_micros(round * 400));
                for id in 500..520i64 {
                    let reply =
                        client.ok(doc! { "insert": &*name, "documents": &list([doc! { "_id": id, "key": id - 100 }]) });
                    last = error_code(&reply).unwrap_or(0);
                }
                last
            }
        });
        let index = doc! { "key": &doc! { "key": 1 }, "name": "key_1", "unique": true };
        let reply = client.run(doc! { "createIndexes": &*name, "indexes": &list([index]) });
        let last = racer.join().unwrap();
        let names = index_names(&mut client, &name);
        let count = int(&client.ok(doc! { "count": &*name }), "n");
        match error_code(&reply) {
            None => {
                made += 1;
                assert_eq!(names, ["_id_", "key_1"]);
                assert_eq!(count, 500, "no duplicate beside a unique index");
                assert_eq!(last, 11000);
            }
            Some(code) => {
                refused += 1;
                assert_eq!(code, 11000, "{reply:?}");
                assert_eq!(names, ["_id_"], "nothing is left of it");
            }
        }
        server.check(&[&name]);
    }
    assert_eq!(made + refused, 12);
}

#[test]
fn a_cursor_keeps_its_snapshot() {
    const DOCUMENTS: i64 = 400;
    let server = Server::start(&[]);
    let address = server.address();
    let rounds = together(16, move |me| {
        let mut client = Client::connect(address);
        let mut other = Client::connect(address);
        let name = format!("c{me}");
        let begun = Instant::now();
        let mut rounds = 0i64;
        while begun.elapsed() < TIME {
            rounds += 1;
            let docs = list((0..DOCUMENTS).map(|id| doc! { "_id": id, "n": rounds }));
            client.ok(doc! { "insert": &*name, "documents": &docs });
            let first = client.ok(doc! { "find": &*name, "batchSize": 5 });
            let all = RawDoc::EMPTY;
            let change = doc! { "q": all, "u": &doc! { "$inc": &doc! { "n": 1000i64 } }, "multi": true };
            other.ok(doc! { "update": &*name, "updates": &list([change]) });
            let some = doc! { "_id": &doc! { "$gte": DOCUMENTS / 2 } };
            other.ok(doc! { "delete": &*name, "deletes": &list([doc! { "q": &some, "limit": 0 }]) });
            other.ok(doc! { "insert": &*name, "documents": &list((0..50).map(|id| doc! { "_id": 10_000 + id, "n": rounds })) });
            let mut seen = BTreeSet::new();
            let error = rest(&mut client, &name, &first, |doc| {
                assert_eq!(number(doc, "n"), rounds, "{doc:?} has changed under the cursor");
                assert!(seen.insert(number(doc, "_id")));
            });
            assert_eq!(error, None);
            assert!(seen.iter().copied().eq(0..DOCUMENTS), "{} documents", seen.len());
            // A cursor whose collection goes says so.
            let first = client.ok(doc! { "find": &*name, "batchSize": 5 });
            other.ok(doc! { "drop": &*name });
            let error = rest(&mut client, &name, &first, |_| {});
            assert!(matches!(error, Some(43 | 175)), "{error:?}");
        }
        rounds
    });
    assert!(rounds.iter().all(|rounds| *rounds > 0), "{rounds:?}");
    server.check(&[]);
}

#[test]
fn renames_and_drops_give_clear_errors_only() {
    let server = Server::start(&[]);
    let address = server.address();
    together(16, move |me| {
        let (mut client, mut numbers) = (Client::connect(address), Numbers(me as u64));
        let begun = Instant::now();
        let mut next = 1_000_000 * me as i64;
        while begun.elapsed() < TIME {
            let name = ["one", "two", "three"][numbers.below(3) as usize];
            next += 1;
            let reply = match (me, numbers.below(10)) {
                (0 | 1, 0..=3) => {
                    let other = ["one", "two", "three"][numbers.below(3) as usize];
                    let (from, to) = (format!("test.{name}"), format!("test.{other}"));
                    client.run_on(
                        "admin",
                        doc! { "renameCollection": &*from, "to": &*to, "dropTarget": numbers.below(2) == 0 },
                    )
                }
                (0, 9) => client.run(doc! { "dropDatabase": 1 }),
                (0..=2, 8) => client.run(doc! { "drop": name }),
                (2, _) => {
                    let index = doc! { "key": &doc! { "a": 1 }, "name": "a_1" };
                    client.run(doc! { "createIndexes": name, "indexes": &list([index]) })
                }
                (_, 0..4) => {
                    client.run(doc! { "insert": name, "documents": &list([doc! { "_id": next, "a": next % 7 }]) })
                }
                (_, 4..=6) => {
                    let update = doc! { "q": &doc! { "a": 3 }, "u": &doc! { "$inc": &doc! { "a": 1 } }, "multi": true };
                    client.run(doc! { "update": name, "updates": &list([update]) })
                }
                (_, 7) => {
                    client.run(doc! { "delete": name, "deletes": &list([doc! { "q": &doc! { "a": 5 }, "limit": 0 }]) })
                }
                _ => {
                    let first = client.run(doc! { "find": name, "batchSize": 3 });
                    if error_code(&first).is_none() {
                        let error = rest(&mut client, name, &first, |_| {});
                        assert!(matches!(error, None | Some(43 | 175 | 237)), "{error:?}");
                    }
                    first
                }
            };
            // Namespace not found, exists already, illegal (to itself), query plan killed, index build aborted
            // or under way.
            let code = error_code(&reply);
            assert!(matches!(code, None | Some(20 | 26 | 48 | 175 | 276 | 12587)), "{reply:?}");
        }
    });
    let mut client = server.connect();
    for name in ["one", "two", "three"] {
        client.ok(doc! { "insert": name, "documents": &list([doc! { "_id": -1 }]) });
    }
    server.check(&["one", "two", "three"]);
}

#[test]
fn what_is_killed_or_late_ends_and_leaves_nothing() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.ok(doc! { "insert": "c", "documents": &list((0..2_000).map(|id| doc! { "_id": id })) });
    let mut range = ArrayBuf::new();
    range.push(0).push(2_000);
    let long = list([
        doc! { "$addFields": &doc! { "n": &doc! { "$size": &doc! { "$range": &range } } } },
        doc! { "$group": &doc! { "_id": ValueRef::Null, "n": &doc! { "$sum": "$n" } } },
    ]);
    let address = server.address();
    let ends = together(16, move |me| {
        let mut client = Client::connect(address);
        let begun = Instant::now();
        let (mut late, mut killed, mut longest) = (0, 0, Duration::ZERO);
        while begun.elapsed() < TIME {
            match me {
                // Each kills what it finds.
                0 => {
                    let reply = client.run_on("admin", doc! { "currentOp": 1 });
                    let ops = reply.as_raw().get("inprog").unwrap().as_array().unwrap();
                    for op in ops.iter().filter_map(ValueRef::as_doc) {
                        let command = op.get_doc("command").and_then(RawDoc::first).map(|elem| elem.name().to_owned());
                        if command.as_deref() == Some("aggregate") {
                            client.run_on("admin", doc! { "killOp": 1, "op": number(op, "opid") });
                        }
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                1..6 => {
                    let first = client.ok(doc! { "find": "c", "batchSize": 2 });
                    let mut ids = ArrayBuf::new();
                    ids.push(cursor_id(&first));
                    let reply = client.ok(doc! { "killCursors": "c", "cursors": &ids });
                    assert_eq!(reply.as_raw().get("cursorsKilled").unwrap().as_array().unwrap().iter().count(), 1);
                    assert_eq!(client.code(doc! { "getMore": cursor_id(&first), "collection": "c" }), 43);
                }
                _ => {
                    let one = Instant::now();
                    let limit = if me % 2 == 0 { 30 } else { 60_000 };
                    let reply = client
                        .run(doc! { "aggregate": "c", "pipeline": &long, "cursor": RawDoc::EMPTY, "maxTimeMS": limit });
                    match error_code(&reply) {
                        None => {}
                        Some(50) => late += 1,
                        Some(11601) => killed += 1,
                        Some(_) => panic!("{reply:?}"),
                    }
                    longest = longest.max(one.elapsed());
                }
            }
        }
        (late, killed, longest)
    });
    assert!(ends.iter().map(|e| e.0).sum::<i32>() > 0, "nothing was late");
    assert!(ends.iter().map(|e| e.1).sum::<i32>() > 0, "nothing was killed");
    assert!(ends.iter().all(|e| e.2 < Duration::from_secs(20)), "{ends:?}");
    let status = client.run_on("admin", doc! { "serverStatus": 1 });
    let open = status.as_raw().get_doc("metrics").and_then(|m| m.get_doc("cursor")).and_then(|c| c.get_doc("open"));
    assert_eq!(number(open.unwrap(), "total"), 0, "no cursor is left open");
    server.check(&["c"]);
}
