//! The logical collections of the pattern `shared` are listed as collections, cost nothing until they are, and are none.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::{Duration, Instant};

use espalier_value::{DocBuf, RawDoc, ValueRef, doc};
use support::{Client, Server, batch, cursor_id, error_code, list, number};

fn declared() -> DocBuf {
    let shared = doc! { "shared": &doc! { "discriminator": "t", "name": "customer_{t}_orders" } };
    doc! { "create": "orders", "patterns": &list([shared]) }
}

fn put(client: &mut Client, name: &str, docs: impl IntoIterator<Item = DocBuf>) {
    let reply = client.ok(doc! { "insert": name, "documents": &list(docs) });
    assert_eq!(error_code(&reply), None, "{reply:?}");
}

/// All that is listed, batch by batch.
fn listed(client: &mut Client, mut command: DocBuf, batch_size: Option<i32>) -> Vec<DocBuf> {
    if let Some(size) = batch_size {
        command.append("cursor", &doc! { "batchSize": size });
    }
    let mut reply = client.ok(command);
    let mut all = Vec::new();
    loop {
        all.extend(batch(&reply).into_iter().map(DocBuf::from_raw));
        match cursor_id(&reply) {
            0 => return all,
            id => reply = client.ok(doc! { "getMore": id, "collection": "$cmd.listCollections" }),
        }
    }
}

fn names(docs: &[DocBuf]) -> Vec<&str> {
    docs.iter().map(|doc| doc.as_raw().get_str("name").unwrap()).collect()
}

#[test]
fn logical_collections_are_listed() {
    let server = Server::start(&["--max-collections", "10"]);
    let mut client = server.connect();
    client.ok(declared());
    put(&mut client, "plain", [doc! { "_id": 1 }]);
    for tenant in 0..30 {
        put(&mut client, &format!("customer_{tenant}_orders"), [doc! { "_id": 1, "n": 1 }, doc! { "_id": 2, "n": 2 }]);
    }
    let index = doc! { "key": &doc! { "n": 1 }, "name": "n_1", "unique": true };
    client.ok(doc! { "createIndexes": "customer_7_orders", "indexes": &list([index]) });

    let all = listed(&mut client, doc! { "listCollections": 1 }, None);
    assert_eq!(all.len(), 32, "{:?}", names(&all));
    for size in [1, 2, 7] {
        let paged = listed(&mut client, doc! { "listCollections": 1 }, Some(size));
        assert_eq!(names(&paged), names(&all));
    }
    let named = doc! { "listCollections": 1, "filter": &doc! { "name": "customer_7_orders" } };
    let one = listed(&mut client, named, None);
    let owner = doc! { "patternOwner": &doc! { "collection": "orders", "pattern": "shared" } };
    assert_eq!(one[0].as_raw().get_str("type"), Some("collection"));
    assert_eq!(one[0].as_raw().get_doc("options").unwrap(), owner.as_raw());
    assert!(all.contains(&one[0]));
    // One without documents is there for whoever asks for it, and not listed.
    for unused in ["customer_none_orders", "customer__orders", "orders_x"] {
        let named = doc! { "listCollections": 1, "filter": &doc! { "name": unused } };
        assert!(listed(&mut client, named, None).is_empty(), "{unused}");
    }
    let only = listed(&mut client, doc! { "listCollections": 1, "nameOnly": true }, None);
    assert!(only.iter().all(|doc| doc.as_raw().count() == 2));
    assert_eq!(names(&only), names(&all));
    // The stored collections alone.
    let raw = listed(&mut client, doc! { "listCollections": 1, "rawData": true }, None);
    assert_eq!(names(&raw), ["orders", "plain"]);

    // Figures of one: its own documents.
    let stats = client.ok(doc! { "collStats": "customer_7_orders" });
    assert_eq!(number(stats.as_raw(), "count"), 2);
    let size = number(stats.as_raw(), "size");
    assert!(size > 0);
    let data = client.ok(doc! { "dataSize": "test.customer_7_orders" });
    assert_eq!((number(data.as_raw(), "numObjects"), number(data.as_raw(), "size")), (2, size));
    assert_eq!(number(client.ok(doc! { "count": "customer_7_orders" }).as_raw(), "n"), 2);
    let indexes = client.ok(doc! { "listIndexes": "customer_7_orders" });
    let keys: Vec<RawDoc<'_>> = batch(&indexes).iter().map(|index| index.get_doc("key").unwrap()).collect();
    assert_eq!(keys, [doc! { "_id": 1 }.as_raw(), doc! { "n": 1 }.as_raw()]);
    // Of the database: every document once.
    let stats = client.ok(doc! { "dbStats": 1 });
    assert_eq!((number(stats.as_raw(), "collections"), number(stats.as_raw(), "objects")), (2, 61));

    // Creating one says what it says of any other.
    client.ok(doc! { "create": "customer_new_orders" });
    assert_eq!(error_code(&client.run(doc! { "create": "customer_7_orders" })), Some(48));
    client.ok(doc! { "drop": "customer_7_orders" });
    assert_eq!(listed(&mut client, doc! { "listCollections": 1 }, None).len(), 31);
    server.check(&["orders"]);
}

#[test]
fn ten_thousand_are_listed_as_they_are_read() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.ok(declared());
    for first in (0..10_000).step_by(2_500) {
        let docs = (first..first + 2_500).flat_map(|tenant| {
            let stored = move |id: i32| {
                let tenant = format!("{tenant:05}");
                doc! { "_id": &doc! { "t": tenant.as_str(), "_id": id }, "t": tenant.as_str() }
            };
            (0..3).map(stored)
        });
        put(&mut client, "orders", docs);
    }
    let before = Instant::now();
    let all = listed(&mut client, doc! { "listCollections": 1, "nameOnly": true }, Some(500));
    let took = before.elapsed();
    assert_eq!(all.len(), 10_001);
    assert!(took < Duration::from_secs(20), "{took:?}");
    // A name is found without looking at the others.
    let before = Instant::now();
    for tenant in (0..10_000).step_by(500) {
        let name = format!("customer_{tenant:05}_orders");
        let one = doc! { "listCollections": 1, "filter": &doc! { "name": name.as_str() } };
        assert_eq!(names(&listed(&mut client, one, None)), [name]);
    }
    assert!(before.elapsed() < took.max(Duration::from_secs(1)), "{:?}, all took {took:?}", before.elapsed());
    let databases = client.run_on("admin", doc! { "listDatabases": 1 });
    assert!(matches!(databases.as_raw().get("ok"), Some(ValueRef::Double(1.0))), "{databases:?}");
}
