//! A database with every pattern, read collection by collection as it is stored (`rawData`) and put into another server in the
//! same way, is the same database: its logical documents, its invariants, and what comes of the next write.
#![allow(clippy::unwrap_used)]

mod support;

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};
use support::{Client, Server, batch, cursor_id, error_code, list, number};

fn all(client: &mut Client, command: DocBuf, collection: &str) -> Vec<DocBuf> {
    let mut reply = client.ok(command);
    let mut docs = Vec::new();
    loop {
        docs.extend(batch(&reply).into_iter().map(DocBuf::from_raw));
        match cursor_id(&reply) {
            0 => return docs,
            id => reply = client.ok(doc! { "getMore": id, "collection": collection }),
        }
    }
}

fn put(client: &mut Client, name: &str, docs: impl IntoIterator<Item = DocBuf>) {
    let reply = client.ok(doc! { "insert": name, "documents": &list(docs) });
    assert_eq!(error_code(&reply), None, "{reply:?}");
}

fn texts(words: &[&str]) -> ArrayBuf {
    words.iter().map(|word| ValueRef::String(word)).collect()
}

fn declare(client: &mut Client, name: &str, pattern: DocBuf) {
    client.ok(doc! { "create": name, "patterns": &list([pattern]) });
}

fn fill(client: &mut Client) {
    declare(client, "users", doc! { "outlier": &doc! { "array": "tags", "threshold": 4, "batchSize": 3 } });
    let numbers = |count: i32| -> ArrayBuf { (0..count).map(ValueRef::Int32).collect() };
    put(client, "users", (0..20).map(|id| doc! { "_id": id, "tags": &numbers(id) }));
    let bucket = doc! { "by": &texts(&["s"]), "time": "ts", "every": "1h", "maxCount": 5, "key": &texts(&["ts"]) };
    declare(client, "readings", doc! { "bucket": &bucket });
    let reading = |n: i64| doc! { "_id": n, "s": n % 2, "ts": ValueRef::DateTime(n * 600_000), "v": n };
    put(client, "readings", (0..40).map(reading));
    let archive = doc! { "when": &doc! { "done": true }, "every": "1d", "read": "union" };
    declare(client, "tasks", doc! { "archive": &archive });
    put(client, "tasks", (0..20).map(|n| doc! { "_id": n, "number": n, "done": n % 3 == 0 }));
    let unique = doc! { "key": &doc! { "number": 1 }, "name": "number_1", "unique": true };
    client.ok(doc! { "createIndexes": "tasks", "indexes": &list([unique.clone()]) });
    client.ok(doc! { "runPattern": "tasks" });
    let shared = doc! { "discriminator": "t", "name": "customer_{t}_orders" };
    declare(client, "orders", doc! { "shared": &shared });
    for tenant in ["a", "b", "c"] {
        put(client, &format!("customer_{tenant}_orders"), (0..5).map(|n| doc! { "_id": n, "number": n }));
    }
    client.ok(doc! { "createIndexes": "customer_a_orders", "indexes": &list([unique]) });
    let approximate = doc! { "fields": &texts(&["views"]), "flush": &doc! { "count": 1_000, "within": "1h" } };
    declare(client, "pages", doc! { "approximate": &approximate });
    put(client, "pages", (0..5).map(|n| doc! { "_id": n, "views": 10 }));
    for id in [0, 1, 1, 2] {
        let update = doc! { "q": &doc! { "_id": id }, "u": &doc! { "$inc": &doc! { "views": 1 } } };
        client.ok(doc! { "update": "pages", "updates": &list([update]) });
    }
    let on = doc! { "product": "_id" };
    let fields = doc! { "n": &doc! { "$count": &doc! {} }, "sum": &doc! { "$sum": "$stars" } };
    let computed = doc! { "computed": &doc! { "from": "reviews", "on": &on, "into": "summary", "fields": &fields } };
    let sort = doc! { "stars": -1 };
    let top =
        doc! { "from": "reviews", "on": &on, "into": "top", "sort": &sort, "limit": 2, "fields": &texts(&["stars"]) };
    client.ok(doc! { "create": "products", "patterns": &list([computed, doc! { "subset": &top }]) });
    put(client, "products", (0..4).map(|n| doc! { "_id": n, "name": "product" }));
    put(client, "reviews", (0..20).map(|n| doc! { "_id": n, "product": n % 4, "stars": n % 6 }));
    let follows = doc! { "p": "_id" };
    let reference =
        doc! { "from": "products", "on": &follows, "into": "product", "fields": &texts(&["name"]), "mode": "follow" };
    declare(client, "lines", doc! { "reference": &reference });
    put(client, "lines", (0..8).map(|n| doc! { "_id": n, "p": n % 4 }));
    put(client, "plain", (0..3).map(|n| doc! { "_id": n }));
}

/// The stored collections, as tools that copy databases list them: those of the system are none of theirs.
fn stored(client: &mut Client) -> Vec<DocBuf> {
    let listed = all(client, doc! { "listCollections": 1, "rawData": true }, "$cmd.listCollections");
    listed.into_iter().filter(|info| !name_of(info).starts_with("system.")).collect()
}

fn name_of(info: &DocBuf) -> &str {
    info.as_raw().get_str("name").unwrap()
}

/// Copies what is stored, a collection after the other.
fn copy(from: &mut Client, to: &mut Client) {
    for info in stored(from) {
        let name = name_of(&info);
        // What a pattern needs it may have made when it was declared; then this says the rest.
        let mut create = doc! { "create": name };
        info.as_raw().get_doc("options").unwrap().iter().for_each(|elem| {
            create.append_elem(elem);
        });
        create.append("rawData", true);
        to.ok(create);
        let specs = all(from, doc! { "listIndexes": name, "rawData": true }, name);
        to.ok(doc! { "createIndexes": name, "indexes": &list(specs), "rawData": true });
        let docs = all(from, doc! { "find": name, "rawData": true, "batchSize": 10_000 }, name);
        if !docs.is_empty() {
            let reply = to.ok(doc! { "insert": name, "documents": &list(docs), "rawData": true });
            assert_eq!(error_code(&reply), None, "{name}: {reply:?}");
        }
    }
}

/// Everything that can be seen of a database, in one text for each thing.
fn seen(client: &mut Client) -> Vec<String> {
    let mut out = Vec::new();
    for raw in [false, true] {
        let listed = all(client, doc! { "listCollections": 1, "rawData": raw }, "$cmd.listCollections");
        for info in listed.iter().filter(|info| !name_of(info).starts_with("system.")) {
            let name = name_of(info);
            let options = info.as_raw().get_doc("options").unwrap();
            // Their order says nothing.
            out.extend(options.iter().map(|elem| format!("{name} {raw}: {}: {}", elem.name(), elem.value())));
            for command in ["find", "listIndexes"] {
                let mut read = DocBuf::new();
                read.append(command, name).append("rawData", raw);
                let docs = all(client, read, name);
                let mut docs: Vec<String> = docs.iter().map(|doc| doc.as_raw().to_string()).collect();
                docs.sort();
                out.extend(docs.into_iter().map(|doc| format!("{name} {raw}: {doc}")));
            }
        }
    }
    out.sort();
    out
}

/// Writes that every pattern has something to do for.
fn go_on(client: &mut Client) {
    let update = |name: &str, id: i32, change: DocBuf| {
        doc! { "update": name, "updates": &list([doc! { "q": &doc! { "_id": id }, "u": &change }]) }
    };
    client.ok(update("users", 19, doc! { "$push": &doc! { "tags": 100 } }));
    let taken = doc! { "_id": 99i64, "s": 0i64, "ts": ValueRef::DateTime(0) };
    assert_eq!(error_code(&client.run(doc! { "insert": "readings", "documents": &list([taken]) })), Some(11000));
    client.ok(update("tasks", 0, doc! { "$set": &doc! { "done": false } }));
    let taken = doc! { "insert": "tasks", "documents": &list([doc! { "_id": 50, "number": 3 }]) };
    assert_eq!(error_code(&client.run(taken)), Some(11000));
    let taken = doc! { "insert": "customer_b_orders", "documents": &list([doc! { "_id": 50, "number": 3 }]) };
    assert_eq!(error_code(&client.run(taken)), Some(11000));
    client.ok(update("customer_a_orders", 1, doc! { "$set": &doc! { "x": 1 } }));
    client.ok(update("pages", 1, doc! { "$inc": &doc! { "views": 1 } }));
    put(client, "reviews", [doc! { "_id": 100, "product": 1, "stars": 5 }]);
    client.ok(doc! { "delete": "reviews", "deletes": &list([doc! { "q": &doc! { "_id": 2 }, "limit": 1 }]) });
    client.ok(update("products", 1, doc! { "$set": &doc! { "name": "another" } }));
}

#[test]
fn a_copy_of_what_is_stored_is_the_same_database() {
    let (first, second) = (Server::start(&[]), Server::start(&[]));
    let (mut from, mut to) = (first.connect(), second.connect());
    fill(&mut from);
    copy(&mut from, &mut to);
    let names = ["users", "readings", "tasks", "orders", "pages", "products", "lines", "reviews", "plain"];
    second.check(&names);
    let (one, other) = (seen(&mut from), seen(&mut to));
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    assert_eq!(one.len(), other.len());
    go_on(&mut from);
    go_on(&mut to);
    for server in [&first, &second] {
        server.check(&names);
    }
    // Times that patterns stamp differ.
    let product = |client: &mut Client| -> Vec<String> {
        let docs = ["users", "products", "lines", "pages"].map(|name| all(client, doc! { "find": name }, name));
        let text = |doc: &DocBuf| {
            doc.as_raw().iter().filter(|elem| elem.name() != "createdAt").map(|e| e.value().to_string()).collect()
        };
        docs.concat().iter().map(text).collect()
    };
    assert_eq!(product(&mut from), product(&mut to));
    let count = |client: &mut Client, name: &str| number(client.ok(doc! { "count": name }).as_raw(), "n");
    for name in names {
        assert_eq!(count(&mut from, name), count(&mut to, name), "{name}");
    }
}
