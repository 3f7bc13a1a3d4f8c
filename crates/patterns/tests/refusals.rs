//! Every case that the pages of `bucket`, `archive` and `shared` list as refused is refused, by the name of the pattern, and
//! has changed nothing.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Db, json, ns};
use espalier_store::{CollectionOptions, Find, IndexSpec, Layer, Mode, Tailable};
use espalier_value::{Collation, DocBuf, Result};

const BUCKET: &str = "{bucket: {by: [\"s\"], time: \"ts\", every: \"1h\", key: [\"ts\"], into: \"buckets\"}}";
const ARCHIVE: &str = "{archive: {when: {done: true}, into: \"old\", write: \"refuse\", read: \"union\"}}";
const SHARED: &str = "{shared: {discriminator: \"t\", name: \"c_{t}\"}}";

fn declared(pattern: &str) -> String {
    format!("{{patterns: [{pattern}]}}")
}

fn insert(db: &Db, name: &str, text: &str) -> Result<()> {
    match db.insert(name, &[json(text)])?.errors.into_iter().next() {
        None => Ok(()),
        Some((_, error)) => Err(error),
    }
}

fn index(db: &Db, name: &str, spec: &str) -> Result<()> {
    let mut tx = db.begin();
    tx.create_indexes(&ns(name), &[IndexSpec::parse(json(spec).as_raw()).unwrap()])?;
    tx.commit().map(drop)
}

/// Everything that is stored.
fn stored(db: &Db) -> Vec<String> {
    let at = db.begin_as(Mode::Auto, true);
    let mut all = Vec::new();
    for info in at.collections("shop").unwrap() {
        all.push(format!("{}: {:?} {:?}", info.name, info.options.listed, at.indexes(&ns(&info.name)).unwrap().len()));
        let mut docs: Vec<DocBuf> = db.raw(&info.name, "{}");
        docs.sort_by_key(|doc| doc.as_raw().to_string());
        all.extend(docs.iter().map(|doc| doc.as_raw().to_string()));
    }
    all
}

type Case<'a> = (&'a str, Box<dyn Fn() -> Result<()> + 'a>);

fn check(db: &Db, pattern: &str, cases: Vec<Case<'_>>) {
    for (what, case) in cases {
        let before = stored(db);
        let Err(error) = case() else { panic!("{what} is not refused") };
        let named = error.message().contains(pattern) || error.message().contains("patterns");
        assert!(named, "{what}: {}", error.message());
        assert_eq!(stored(db), before, "{what}");
    }
}

/// What no logical document has, on a collection or a logical name.
fn physical<'a>(db: &'a Db, name: &'a str) -> Vec<Case<'a>> {
    let find = move |how: fn(&mut Find)| -> Box<dyn Fn() -> Result<()> + 'a> {
        Box::new(move || db.find_with(name, "{}", how).map(drop))
    };
    vec![
        ("returnKey", find(|find| find.return_key = true)),
        ("showRecordId", find(|find| find.show_record_id = true)),
        ("min", find(|find| find.min = Some(json("{_id: 1}")))),
        ("max", find(|find| find.max = Some(json("{_id: 1}")))),
        ("tailable", find(|find| find.tailable = Some(Tailable::Tail))),
    ]
}

/// What no pattern can be declared on, and what cannot be declared twice.
fn anywhere<'a>(db: &'a Db, pattern: &'a str) -> Vec<Case<'a>> {
    let create = move |with: fn(&mut CollectionOptions)| -> Box<dyn Fn() -> Result<()> + 'a> {
        Box::new(move || {
            let mut options = CollectionOptions { listed: json(&declared(pattern)), ..CollectionOptions::default() };
            with(&mut options);
            options.layer = Layer::of(options.listed.as_raw());
            db.begin().create(&ns("another"), &options)
        })
    };
    vec![
        (
            "capped",
            create(|options| options.capped = Some(espalier_store::Capped { size_bytes: 4096, max_documents: 0 })),
        ),
        (
            "a default collation",
            create(|options| {
                let collation = json("{locale: \"en\", strength: 2}");
                options.collation = Collation::parse(collation.as_raw(), "").unwrap();
                options.listed.append("collation", &collation);
            }),
        ),
        (
            "two layouts",
            Box::new(move || {
                db.create("another", &format!("{{patterns: [{pattern}, {{outlier: {{array: \"a\"}}}}]}}"))
            }),
        ),
        (
            "in a transaction",
            Box::new(move || {
                let listed = json(&declared(pattern));
                let layer = Layer::of(listed.as_raw());
                let options = CollectionOptions { layer, listed, ..CollectionOptions::default() };
                db.begin_as(Mode::Transaction, false).create(&ns("another"), &options)
            }),
        ),
    ]
}

#[test]
fn bucket_refuses_what_its_page_lists() {
    let db = Db::new();
    db.create("c", &declared(BUCKET)).unwrap();
    insert(&db, "c", "{_id: 1, s: 1, ts: date(1)}").unwrap();
    db.create("plain", "{}").unwrap();
    insert(&db, "plain", "{_id: 1}").unwrap();
    db.create("twice", "{}").unwrap();
    insert(&db, "twice", "{_id: 1, s: 1, ts: date(1)}").unwrap();
    insert(&db, "twice", "{_id: 2, s: 1, ts: date(1)}").unwrap();
    db.create("unique", "{}").unwrap();
    index(&db, "unique", "{key: {v: 1}, name: \"v\", unique: true}").unwrap();
    let on = |name: &'static str| -> Box<dyn Fn() -> Result<()> + '_> {
        let db = &db;
        Box::new(move || db.modify(name, &declared(&BUCKET.replace("buckets", &format!("{name}Buckets")))))
    };
    let mut cases: Vec<Case<'_>> = vec![
        ("no time", Box::new(|| insert(&db, "c", "{_id: 2, s: 1}"))),
        ("a time that is none", Box::new(|| insert(&db, "c", "{_id: 2, s: 1, ts: 5}"))),
        ("an array to group by", Box::new(|| insert(&db, "c", "{_id: 2, s: [1], ts: date(2)}"))),
        ("a unique index", Box::new(|| index(&db, "c", "{key: {v: 1}, name: \"v\", unique: true}"))),
        ("on no readings", on("plain")),
        ("on two with one key", on("twice")),
        ("on a unique index", on("unique")),
        ("a write to the buckets", Box::new(|| insert(&db, "buckets", "{_id: 1}"))),
        ("dropping the buckets", Box::new(|| db.begin().drop_collection(&ns("buckets")).map(drop))),
    ];
    cases.extend(physical(&db, "c"));
    cases.extend(anywhere(&db, BUCKET));
    check(&db, "bucket", cases);
}

#[test]
fn archive_refuses_what_its_page_lists() {
    let db = Db::new();
    db.create("c", &declared(ARCHIVE)).unwrap();
    insert(&db, "c", "{_id: 1, done: true}").unwrap();
    insert(&db, "c", "{_id: 2, done: false}").unwrap();
    espalier_store::Store::run_pattern(&*db.store, &ns("c"), &common::context()).unwrap();
    db.create("stamped", "{}").unwrap();
    insert(&db, "stamped", "{_id: 1, archivedAt: 5}").unwrap();
    let mut cases: Vec<Case<'_>> = vec![
        ("an update of what is archived", Box::new(|| db.update("c", "{_id: 1}", "{$set: {x: 1}}").map(drop))),
        ("a delete of what is archived", Box::new(|| db.delete("c", "{_id: 1}", false).map(drop))),
        ("many, one of which is archived", Box::new(|| db.delete("c", "{}", true).map(drop))),
        ("a stamp of a client's", Box::new(|| insert(&db, "c", "{_id: 3, archivedAt: 1}"))),
        ("a stamp set", Box::new(|| db.update("c", "{_id: 2}", "{$set: {archivedAt: 1}}").map(drop))),
        ("on documents with a stamp", Box::new(|| db.modify("stamped", &declared(&ARCHIVE.replace("old", "o2"))))),
        ("a write to the archive", Box::new(|| insert(&db, "old", "{_id: 9}"))),
        ("dropping the archive", Box::new(|| db.begin().drop_collection(&ns("old")).map(drop))),
    ];
    cases.extend(physical(&db, "c"));
    cases.extend(anywhere(&db, ARCHIVE));
    check(&db, "archive", cases);
}

#[test]
fn shared_refuses_what_its_page_lists() {
    let db = Db::new();
    db.create("orders", &declared(SHARED)).unwrap();
    insert(&db, "c_a", "{_id: 1}").unwrap();
    insert(&db, "c_a", "{_id: 2}").unwrap();
    let tx = |case: fn(&mut dyn espalier_store::Transaction) -> Result<()>| -> Box<dyn Fn() -> Result<()> + '_> {
        let db = &db;
        Box::new(move || case(&mut *db.begin()))
    };
    let mut cases: Vec<Case<'_>> = vec![
        ("TTL", Box::new(|| index(&db, "c_a", "{key: {at: 1}, name: \"at\", expireAfterSeconds: 5}"))),
        ("wildcard", Box::new(|| index(&db, "c_a", "{key: {\"$**\": 1}, name: \"w\"}"))),
        ("partial by _id", {
            let (db, spec) = (&db, "{key: {a: 1}, name: \"p\", partialFilterExpression: {_id: {$gt: 1}}}");
            Box::new(move || index(db, "c_a", spec))
        }),
        ("sparse on several", Box::new(|| index(&db, "c_a", "{key: {a: 1, b: 1}, name: \"s\", sparse: true}"))),
        ("dropping an index", tx(|tx| tx.drop_index(&ns("c_a"), "x"))),
        ("the pattern's index", tx(|tx| tx.drop_index(&ns("orders"), "shared_tenant"))),
        ("collMod", Box::new(|| db.modify("c_a", "{validationLevel: \"off\"}"))),
        ("validate with repair", tx(|tx| tx.validate(&ns("c_a"), false, true).map(drop))),
        ("renaming a part", tx(|tx| tx.rename(&ns("c_a"), &ns("x"), false))),
        ("renaming onto a part", tx(|tx| tx.rename(&ns("orders"), &ns("c_a"), false))),
        ("renaming the whole", tx(|tx| tx.rename(&ns("orders"), &ns("x"), false))),
        ("create with options", Box::new(|| db.create("c_a", "{validationLevel: \"off\"}"))),
        ("another's document", Box::new(|| insert(&db, "c_a", "{_id: 3, t: \"b\"}"))),
        ("giving one away", Box::new(|| db.update("c_a", "{_id: 1}", "{$set: {t: \"b\"}}").map(drop))),
        ("not as it is stored", Box::new(|| insert(&db, "orders", "{_id: 3, t: \"a\"}"))),
    ];
    cases.extend(physical(&db, "c_a"));
    cases.extend(anywhere(&db, "{shared: {discriminator: \"t\", name: \"d_{t}\"}}"));
    check(&db, "shared", cases);
}
