//! A session of the official Rust driver against the server named by `ESPALIER_URI`.
//!
//! Every step panics with what it expected; the exit code is the result.

use mongodb::IndexModel;
use mongodb::bson::{Bson, Document, doc, oid::ObjectId};
use mongodb::error::{ErrorKind, WriteFailure};
use mongodb::options::{IndexOptions, ReturnDocument};
use mongodb::sync::{Client, Collection, Database};

fn main() {
    let uri = std::env::var("ESPALIER_URI").expect("ESPALIER_URI names the server");
    let steps: [(&str, fn(&Database, &Client)); 8] = [
        ("create, read, update, delete", crud),
        ("find one and update", find_and_modify),
        ("unique index and its error", unique_index),
        ("cursor over several batches", cursor),
        ("aggregation", aggregation),
        ("transaction", transaction),
        ("types come back as they went", types),
        ("errors carry their codes", errors),
    ];
    let client = Client::with_uri_str(&uri).expect("connects");
    for (name, step) in steps {
        let db = client.database(&format!("rust_{}", ObjectId::new()));
        step(&db, &client);
        db.drop().run().expect("drops the database");
        println!("ok {name}");
    }
    for compressor in ["snappy", "zlib", "zstd"] {
        let separator = if uri.contains('?') { '&' } else { '?' };
        let client = Client::with_uri_str(format!("{uri}{separator}compressors={compressor}")).expect("connects");
        let db = client.database(&format!("rust_{}", ObjectId::new()));
        crud(&db, &client);
        db.drop().run().expect("drops the database");
        println!("ok compressed with {compressor}");
    }
}

fn crud(db: &Database, _: &Client) {
    let users: Collection<Document> = db.collection("users");
    let inserted = users.insert_many((0..10).map(|n| doc! { "_id": n, "name": format!("u{n}"), "age": 20 + n })).run();
    assert_eq!(inserted.expect("inserts").inserted_ids.len(), 10);
    let found = users.find_one(doc! { "age": { "$gte": 25 } }).sort(doc! { "age": -1 }).run().expect("finds");
    assert_eq!(found.and_then(|user| user.get_i32("_id").ok()), Some(9));
    let updated =
        users.update_many(doc! { "age": { "$lt": 25 } }, doc! { "$inc": { "age": 100 } }).run().expect("updates");
    assert_eq!((updated.matched_count, updated.modified_count), (5, 5));
    let upserted =
        users.update_one(doc! { "_id": 77 }, doc! { "$set": { "age": 1 } }).upsert(true).run().expect("upserts");
    assert_eq!(upserted.upserted_id, Some(Bson::Int32(77)));
    let replaced = users.replace_one(doc! { "_id": 77 }, doc! { "age": 2 }).run().expect("replaces");
    assert_eq!(replaced.modified_count, 1);
    let deleted = users.delete_many(doc! { "age": { "$gte": 100 } }).run().expect("deletes");
    assert_eq!(deleted.deleted_count, 5);
    assert_eq!(users.count_documents(doc! {}).run().expect("counts"), 6);
    assert_eq!(users.estimated_document_count().run().expect("estimates"), 6);
    let mut ages = users.distinct("age", doc! { "_id": { "$lt": 50 } }).run().expect("distinct values");
    ages.sort_by_key(|age| age.as_i32());
    assert_eq!(ages, (25..30).map(Bson::Int32).collect::<Vec<_>>());
}

fn find_and_modify(db: &Database, _: &Client) {
    let counters: Collection<Document> = db.collection("counters");
    for expected in 1..=3 {
        let after = counters
            .find_one_and_update(doc! { "_id": "orders" }, doc! { "$inc": { "next": 1 } })
            .upsert(true)
            .return_document(ReturnDocument::After)
            .run()
            .expect("counts up")
            .expect("the new document");
        assert_eq!(after, doc! { "_id": "orders", "next": expected });
    }
    let gone = counters.find_one_and_delete(doc! { "_id": "orders" }).run().expect("deletes");
    assert_eq!(gone, Some(doc! { "_id": "orders", "next": 3 }));
}

fn unique_index(db: &Database, _: &Client) {
    let users: Collection<Document> = db.collection("users");
    let index =
        IndexModel::builder().keys(doc! { "email": 1 }).options(IndexOptions::builder().unique(true).build()).build();
    assert_eq!(users.create_index(index).run().expect("creates").index_name, "email_1");
    users.insert_one(doc! { "email": "a@example.com" }).run().expect("inserts");
    let error = users.insert_one(doc! { "email": "a@example.com" }).run().expect_err("a duplicate");
    match *error.kind {
        ErrorKind::Write(WriteFailure::WriteError(error)) => assert_eq!(error.code, 11000),
        other => panic!("expected a write error, got {other:?}"),
    }
    let mut names = users.list_index_names().run().expect("lists");
    names.sort();
    assert_eq!(names, ["_id_", "email_1"]);
}

fn cursor(db: &Database, _: &Client) {
    let numbers: Collection<Document> = db.collection("numbers");
    numbers.insert_many((0..1000).map(|n| doc! { "_id": n })).run().expect("inserts");
    let read: Vec<i32> = numbers
        .find(doc! {})
        .sort(doc! { "_id": 1 })
        .batch_size(70)
        .run()
        .expect("opens")
        .map(|document| document.expect("a document").get_i32("_id").expect("an _id"))
        .collect();
    assert_eq!(read, (0..1000).collect::<Vec<_>>());
}

fn aggregation(db: &Database, _: &Client) {
    let orders: Collection<Document> = db.collection("orders");
    orders.insert_many((0..30).map(|n| doc! { "customer": n % 3, "total": n })).run().expect("inserts");
    let pipeline = [
        doc! { "$match": { "total": { "$gte": 10 } } },
        doc! { "$group": { "_id": "$customer", "sum": { "$sum": "$total" }, "count": { "$sum": 1 } } },
        doc! { "$sort": { "_id": 1 } },
    ];
    let groups: Vec<Document> =
        orders.aggregate(pipeline).run().expect("opens").map(|group| group.expect("a group")).collect();
    let expected = [(0, 117, 6), (1, 133, 7), (2, 140, 7)];
    let expected: Vec<_> = expected.map(|(id, sum, n)| doc! { "_id": id, "sum": sum, "count": n }).into();
    assert_eq!(groups, expected);
}

fn transaction(db: &Database, client: &Client) {
    let accounts: Collection<Document> = db.collection("accounts");
    accounts.insert_many([doc! { "_id": "a", "n": 100 }, doc! { "_id": "b", "n": 0 }]).run().expect("inserts");
    let balances = || {
        let read = |id: &str| accounts.find_one(doc! { "_id": id }).run().expect("reads").expect("an account");
        (read("a").get_i32("n").expect("n"), read("b").get_i32("n").expect("n"))
    };
    for commit in [false, true] {
        let mut session = client.start_session().run().expect("starts a session");
        session.start_transaction().run().expect("starts");
        for (id, amount) in [("a", -10), ("b", 10)] {
            let update = doc! { "$inc": { "n": amount } };
            accounts.update_one(doc! { "_id": id }, update).session(&mut session).run().expect("updates");
        }
        assert_eq!(balances(), (100, 0), "nothing is seen before the commit");
        if commit {
            session.commit_transaction().run().expect("commits");
        } else {
            session.abort_transaction().run().expect("aborts");
        }
    }
    assert_eq!(balances(), (90, 10));
}

fn types(db: &Database, _: &Client) {
    let things: Collection<Document> = db.collection("things");
    let thing = doc! {
        "_id": ObjectId::new(), "double": 1.5, "string": "ü", "document": { "a": { "b": 1 } }, "array": [1, [2], {}],
        "binary": Bson::Binary(mongodb::bson::Binary { subtype: mongodb::bson::spec::BinarySubtype::Generic, bytes: vec![0, 1] }),
        "bool": true, "date": mongodb::bson::DateTime::from_millis(-1), "null": null, "int": 1, "long": 1i64 << 40,
        "decimal": "1.10".parse::<mongodb::bson::Decimal128>().expect("a decimal"), "min": Bson::MinKey, "max": Bson::MaxKey,
        "timestamp": Bson::Timestamp(mongodb::bson::Timestamp { time: 7, increment: 8 }), "undefined": Bson::Undefined,
        "code": Bson::JavaScriptCode("f".into()), "symbol": Bson::Symbol("s".into()),
    };
    things.insert_one(&thing).run().expect("inserts");
    assert_eq!(things.find_one(doc! {}).run().expect("finds"), Some(thing));
}

fn errors(db: &Database, _: &Client) {
    let code = |command: Document| match *db.run_command(command).run().expect_err("an error").kind {
        ErrorKind::Command(error) => (error.code, error.code_name),
        other => panic!("expected a command error, got {other:?}"),
    };
    assert_eq!(code(doc! { "noSuchCommand": 1 }), (59, "CommandNotFound".to_owned()));
    assert_eq!(code(doc! { "find": "c", "filter": { "a": { "$nonsense": 1 } } }), (2, "BadValue".to_owned()));
    assert_eq!(code(doc! { "find": "c", "filter": 1 }), (14, "TypeMismatch".to_owned()));
    assert_eq!(code(doc! { "drop": "" }), (73, "InvalidNamespace".to_owned()));
}
