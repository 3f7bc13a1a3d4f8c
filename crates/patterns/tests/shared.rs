//! The shared pattern: many logical collections in one. Random operations on two of them and on two plain ones give the
//! same replies and documents; what hand-made consolidation gets wrong (equal `_id`s and numbers of two tenants, queries
//! without the tenant) is right.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use common::{Db, Random, context, json, ns, plain, projection};
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_store::{Find, IndexSpec, Mode, Verbosity, Want};
use espalier_value::{Code, DocBuf, Error, RawDoc, ValueRef};

const DECLARED: &str = "{patterns: [{shared: {discriminator: \"tenantId\", name: \"customer_{tenantId}_orders\"}}]}";
const A: &str = "customer_a_orders";
const B: &str = "customer_b_orders";

fn shop() -> Db {
    let db = Db::new();
    db.create("orders", DECLARED).unwrap();
    db
}

fn insert(db: &Db, name: &str, text: &str) -> Result<(), Error> {
    match db.insert(name, &[json(text)]).unwrap().errors.into_iter().next() {
        None => Ok(()),
        Some((_, error)) => Err(error),
    }
}

fn index(db: &Db, name: &str, spec: &str) -> Result<(), Error> {
    let mut tx = db.begin();
    tx.create_indexes(&ns(name), &[IndexSpec::parse(json(spec).as_raw()).unwrap()])?;
    tx.commit().map(drop)
}

fn int(doc: RawDoc<'_>, name: &str) -> i64 {
    match doc.get(name) {
        Some(ValueRef::Int32(n)) => n.into(),
        Some(ValueRef::Int64(n)) => n,
        other => panic!("{name}: {other:?} in {doc:?}"),
    }
}

#[test]
fn a_wrong_declaration_is_refused_with_its_path() {
    let db = Db::new();
    for (options, path) in [
        ("name: \"c_{t}\"", "patterns.0.shared.discriminator"),
        ("discriminator: \"t\"", "patterns.0.shared.name"),
        ("discriminator: \"a.b\", name: \"c_{a.b}\"", "patterns.0.shared.discriminator"),
        ("discriminator: \"t\", name: \"c_x\"", "patterns.0.shared.name"),
        ("discriminator: \"t\", name: \"{t}\"", "patterns.0.shared.name"),
        ("discriminator: \"t\", name: \"c_{t}_{t}\"", "patterns.0.shared.name"),
        ("discriminator: \"t\", name: \"c_{t}\", into: \"other\"", "patterns.0.shared.into"),
        ("discriminator: \"t\", name: \"c_{t}\", nope: 1", "patterns.0.shared.nope"),
    ] {
        let error = db.create("orders", &format!("{{patterns: [{{shared: {{{options}}}}}]}}")).unwrap_err();
        assert_eq!(error.code(), Code::InvalidOptions, "{options}");
        assert!(error.message().starts_with(&format!("{path}: ")), "{options}: {}", error.message());
        let known = error.message().split("known are ").nth(1).unwrap_or("into, discriminator, name");
        assert_eq!(known, "into, discriminator, name");
    }
}

#[test]
fn c5_two_tenants_may_have_the_same_id_and_number() {
    let db = shop();
    index(&db, A, "{key: {number: 1}, name: \"number_1\", unique: true}").unwrap();
    // The other asks for it, too, as applications do when they start.
    index(&db, B, "{key: {number: 1}, name: \"number_1\", unique: true}").unwrap();
    for name in [A, B] {
        insert(&db, name, "{_id: 1, number: 7}").unwrap();
        let by_id = insert(&db, name, "{_id: 1, number: 8}").unwrap_err();
        assert_eq!(by_id.code(), Code::DuplicateKey);
        assert_eq!(
            by_id.message(),
            format!("E11000 duplicate key error collection: shop.{name} index: _id_ dup key: {{_id: 1}}")
                .replace("{_id: 1}", &json("{_id: 1}").as_raw().to_string())
        );
        let by_number = insert(&db, name, "{_id: 2, number: 7}").unwrap_err();
        assert_eq!(by_number.info().unwrap().as_raw().get_doc("keyPattern").unwrap(), json("{number: 1}").as_raw());
        assert_eq!(by_number.info().unwrap().as_raw().get_doc("keyValue").unwrap(), json("{number: 7}").as_raw());
    }
    let listed: Vec<DocBuf> =
        db.begin().indexes(&ns(A)).unwrap().iter().map(|index| DocBuf::from_raw(index.spec.key())).collect();
    assert_eq!(listed, [json("{_id: 1}"), json("{number: 1}")]);
    db.assert_valid("orders");
}

#[test]
fn documents_are_stored_with_their_tenant() {
    let db = shop();
    insert(&db, A, "{_id: 1, n: 1}").unwrap();
    insert(&db, B, "{_id: 1, tenantId: \"b\", n: 2}").unwrap();
    assert_eq!(db.find(A, "{}"), [json("{_id: 1, tenantId: \"a\", n: 1}")]);
    let stored = db.find("orders", "{}");
    assert_eq!(stored[0], json("{_id: {tenantId: \"a\", _id: 1}, tenantId: \"a\", n: 1}"));
    assert_eq!(stored.len(), 2);
    assert_eq!(db.find("orders", "{n: {$gte: 1}}").len(), 2);
    // None of them is a collection of its own.
    assert_eq!(db.begin().collections("shop").unwrap().len(), 1);
    let stats = db.begin().coll_stats(&ns("orders")).unwrap();
    assert_eq!(int(stats.patterns.unwrap().as_raw(), "tenants"), 2);
    assert_eq!(db.begin().coll_stats(&ns(A)).unwrap().count, 1);
}

#[test]
fn the_tenant_is_the_patterns() {
    let db = shop();
    insert(&db, A, "{_id: 1, n: 1}").unwrap();
    assert_eq!(insert(&db, A, "{_id: 2, tenantId: \"b\"}").unwrap_err().code(), Code::ImmutableField);
    for update in ["{$set: {tenantId: \"b\"}}", "{$unset: {tenantId: 1}}", "{n: 1, tenantId: \"b\"}"] {
        assert_eq!(db.update(A, "{_id: 1}", update).unwrap_err().code(), Code::ImmutableField, "{update}");
    }
    db.update(A, "{_id: 1}", "{n: 5}").unwrap();
    assert_eq!(db.find(A, "{}"), [json("{_id: 1, tenantId: \"a\", n: 5}")]);
    // On the physical collection, too.
    let wrong = insert(&db, "orders", "{_id: 5, tenantId: \"a\"}").unwrap_err();
    assert!(wrong.message().contains("pattern 'shared'"), "{}", wrong.message());
    assert!(db.update("orders", "{n: 5}", "{$set: {tenantId: \"b\"}}").is_err());
    assert_eq!(db.update("orders", "{n: 5}", "{$set: {n: 6}}").unwrap().modified, 1);
    assert_eq!(db.find(A, "{n: 6}").len(), 1);
    db.assert_valid("orders");
}

#[test]
fn what_is_wrong_is_found_and_mended() {
    let db = shop();
    insert(&db, A, "{_id: 1}").unwrap();
    let mut raw = db.begin_as(Mode::Auto, true);
    raw.update(&ns("orders"), &common::update_spec("{}", "{$set: {tenantId: \"b\"}}").unwrap()).unwrap();
    raw.commit().unwrap();
    let report = db.validate("orders", false);
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(false))), "{report:?}");
    // Whose it is by its field says whose it is to be.
    let report = db.validate(B, false);
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(false))), "{report:?}");
    let report = db.validate("orders", true);
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(true))), "{report:?}");
    assert_eq!(db.find(A, "{}").len(), 1);
    for name in [A, B] {
        db.assert_valid(name);
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let db = shop();
    insert(&db, A, "{_id: 1}").unwrap();
    let refused = |error: Error| assert!(error.message().contains("pattern 'shared'"), "{}", error.message());
    refused(index(&db, A, "{key: {t: 1}, name: \"t\", expireAfterSeconds: 5}").unwrap_err());
    refused(index(&db, A, "{key: {\"$**\": 1}, name: \"w\"}").unwrap_err());
    refused(index(&db, A, "{key: {n: 1, tenantId: 1}, name: \"n\"}").unwrap_err());
    let mut tx = db.begin();
    refused(tx.drop_index(&ns(A), "number_1").unwrap_err());
    refused(tx.rename(&ns(A), &ns("x"), false).unwrap_err());
    refused(tx.rename(&ns("orders"), &ns("x"), false).unwrap_err());
    refused(tx.validate(&ns(A), false, true).unwrap_err());
    refused(db.modify(A, DECLARED).unwrap_err());
    refused(db.create(A, "{capped: true}").unwrap_err());
    db.create(A, "{}").unwrap();
    // Still as it was.
    assert_eq!(db.find(A, "{}").len(), 1);
    drop(tx);
    let mut tx = db.begin();
    assert!(tx.drop_collection(&ns(A)).unwrap());
    assert!(!tx.drop_collection(&ns(A)).unwrap());
    tx.commit().unwrap();
    db.modify("orders", "{}").unwrap();
    insert(&db, A, "{_id: 1}").unwrap();
    assert_eq!(db.find(A, "{}"), [json("{_id: 1}")]);
    // There is a collection of such a name now, which becomes a part again.
    db.modify("orders", DECLARED).unwrap();
    assert_eq!(db.find(A, "{}"), [json("{_id: 1, tenantId: \"a\"}")]);
}

#[test]
fn derivations_are_refused_that_would_not_see_every_write() {
    let db = shop();
    let computed = |from: &str| {
        format!(
            "{{computed: {{from: \"{from}\", on: {{c: \"_id\"}}, into: \"sum\", fields: {{n: {{$count: {{}}}}}}}}}}"
        )
    };
    for from in ["orders", A] {
        let error = db.create("summaries", &format!("{{patterns: [{}]}}", computed(from))).unwrap_err();
        assert!(error.message().contains("pattern 'shared'"), "{}", error.message());
    }
    let both = DECLARED.replace("]}", &format!(", {}]}}", computed("other")));
    assert!(db.create("two", &both).unwrap_err().message().contains("beside 'shared'"));
    db.create("reviews", "{}").unwrap();
    db.create("summaries", &format!("{{patterns: [{}]}}", computed("reviews"))).unwrap();
    let error = db.modify("reviews", &DECLARED.replace("orders", "reviews")).unwrap_err();
    assert!(error.message().contains("'summaries'"), "{}", error.message());
    // A part that somebody watches would not be watched any more.
    db.create("summaries2", &format!("{{patterns: [{}]}}", computed("customer_x_reviews"))).unwrap();
    let error = db.create("others", &DECLARED.replace("orders", "reviews")).unwrap_err();
    assert!(error.message().contains("patternWatchers"), "{}", error.message());
}

#[test]
fn reads_use_the_indexes_of_the_tenant() {
    let db = shop();
    index(&db, A, "{key: {status: 1}, name: \"status_1\"}").unwrap();
    for id in 0..50 {
        insert(&db, A, &format!("{{_id: {id}, status: {}}}", id % 5)).unwrap();
        insert(&db, B, &format!("{{_id: {id}, status: {}}}", id % 5)).unwrap();
    }
    let examined = |filter: &str, sort: &str| {
        let parsed = espalier_query::Filter::parse(json(filter).as_raw(), &Default::default()).unwrap();
        let mut find = Find::new(Arc::new(parsed), context());
        find.sort = Sort::parse(json(sort).as_raw(), &Scope::default()).unwrap().map(Arc::new);
        let plan = db.begin().explain(&ns(A), &find, Verbosity::ExecutionStats).unwrap();
        int(plan.as_raw().get_doc("executionStats").unwrap(), "totalDocsExamined")
    };
    assert_eq!(examined("{_id: 7}", "{}"), 1);
    assert_eq!(examined("{status: 3}", "{}"), 10);
    assert_eq!(examined("{_id: {$gte: 45}}", "{_id: 1}"), 5);
    assert_eq!(examined("{}", "{_id: -1}"), 50);
}

fn by(text: &str) -> Option<Arc<Sort>> {
    Sort::parse(json(text).as_raw(), &Scope::default()).unwrap().map(Arc::new)
}

fn filter(random: &mut Random) -> String {
    let id = random.below(8);
    match random.below(12) {
        0 => "{}".to_string(),
        1 => format!("{{_id: {{$in: [{id}, {}]}}}}", random.below(8)),
        2 => format!("{{_id: {{$gt: {id}}}}}"),
        3 => format!("{{$or: [{{_id: {id}}}, {{n: {}}}]}}", random.below(6)),
        4 => format!("{{$expr: {{$gt: [\"$_id\", {id}]}}}}"),
        5 => format!("{{$expr: {{$gt: [\"$n\", {id}]}}}}"),
        6 => format!("{{n: {{$gte: {}}}}}", random.below(6)),
        7 => format!("{{_id: {{$not: {{$lt: {id}}}}}, n: {{$exists: true}}}}"),
        8 => format!("{{$nor: [{{_id: {id}}}, {{u: {}}}]}}", random.below(8)),
        9 => "{_id: {x: 1}}".to_string(),
        _ => format!("{{_id: {id}}}"),
    }
}

fn update(random: &mut Random) -> String {
    let n = random.below(9);
    match random.below(8) {
        0 => format!("{{$inc: {{n: {n}}}}}"),
        1 => format!("{{$set: {{u: {n}}}}}"),
        2 => format!("{{$push: {{tags: {n}}}}}"),
        3 => format!("[{{$set: {{n: {{$add: [\"$_id\", {n}]}}}}}}]"),
        4 => format!("{{n: {n}, u: {n}}}"),
        5 => "{$unset: {u: 1}}".to_string(),
        6 => format!("{{$set: {{_id: {n}}}}}"),
        _ => format!("{{$setOnInsert: {{m: {n}}}, $set: {{n: {n}}}}}"),
    }
}

fn show(result: Result<impl std::fmt::Debug, Error>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("error {}", error.code().0),
    }
}

fn without_tenant(doc: &DocBuf) -> DocBuf {
    plain(doc, &["tenantId"])
}

fn all(db: &Db, name: &str) -> Vec<DocBuf> {
    let docs = db.find_with(name, "{}", |find| find.sort = by("{_id: 1}")).unwrap();
    docs.iter().map(without_tenant).collect()
}

fn one_step(db: &Db, random: &mut Random, pair: [&str; 2]) -> String {
    match random.below(8) {
        0 | 1 => {
            let id = match random.below(10) {
                0 => "{x: 1}".to_string(),
                _ => random.below(8).to_string(),
            };
            let u = if random.below(2) == 0 { format!(", u: {}", random.below(8)) } else { String::new() };
            let doc = format!("{{_id: {id}, n: {}{u}}}", random.below(9));
            let results = pair.map(|name| insert(db, name, &doc).err().map(|error| error.code().0));
            assert_eq!(results[0], results[1], "insert {doc}");
            format!("insert {doc}")
        }
        2 => {
            let filter = filter(random);
            let results = pair.map(|name| show(db.delete(name, &filter, true)));
            assert_eq!(results[0], results[1], "delete {filter}");
            format!("delete {filter}")
        }
        3 | 4 => {
            let filter = filter(random);
            let order = ["{_id: 1}", "{n: -1, _id: 1}", "{u: 1, _id: -1}"][random.below(3) as usize];
            let (skip, limit) = (random.below(3), [None, Some(1), Some(3)][random.below(3) as usize]);
            let shown = ["{tenantId: 0}", "{n: 1}", "{_id: 0, u: 1}"][random.below(3) as usize];
            let docs = pair.map(|name| {
                let docs = db.find_with(name, &filter, |find| {
                    (find.sort, find.skip, find.limit) = (by(order), skip, limit);
                    find.projection = projection(shown, &filter);
                });
                docs.unwrap()
            });
            assert_eq!(docs[0], docs[1], "find {filter} {order} {skip} {limit:?} {shown}");
            let numbers = pair.map(|name| {
                let at = db.begin();
                let parsed = espalier_query::Filter::parse(json(&filter).as_raw(), &Default::default()).unwrap();
                let mut find = Find::new(Arc::new(parsed), context());
                let values = [at.distinct(&ns(name), "_id", &find), at.distinct(&ns(name), "n", &find)];
                (find.skip, find.limit) = (skip, limit);
                (at.count(&ns(name), &find).unwrap(), format!("{values:?}"))
            });
            assert_eq!(numbers[0], numbers[1], "count and distinct {filter}");
            format!("find {filter}")
        }
        _ => {
            let (filter, text) = (filter(random), update(random));
            let multi = random.below(4) == 0 && !text.starts_with("{n:");
            let upsert = random.below(3) == 0 && filter.starts_with("{_id: ") && !filter.contains('$');
            let want = [Want::Nothing, Want::Before, Want::After][if multi { 0 } else { random.below(3) as usize }];
            let mode = if random.below(4) == 0 { Mode::Transaction } else { Mode::Auto };
            let results = pair.map(|name| {
                let mut spec = common::update_spec(&filter, &text).unwrap();
                (spec.multi, spec.upsert, spec.want) = (multi, upsert, want);
                spec.sort = by("{_id: 1}").filter(|_| !multi);
                let mut tx = db.begin_as(mode, false);
                let done = tx.update(&ns(name), &spec).and_then(|done| tx.commit().map(|_| done));
                show(done.map(|done| {
                    let image = done.image.map(|image| without_tenant(&image));
                    (done.matched, done.modified, done.upserted_id, image)
                }))
            });
            let what = format!("update {filter} with {text}, multi {multi}, upsert {upsert}");
            assert_eq!(results[0], results[1], "{what}");
            if multi && results[0].starts_with("error") {
                for name in pair {
                    db.delete(name, "{}", true).unwrap();
                }
            }
            what
        }
    }
}

#[test]
fn a_logical_collection_is_the_same_as_a_plain_one() {
    for seed in 0..25 {
        let mut random = Random(seed);
        let db = shop();
        for name in [A, B, "qa", "qb"] {
            index(&db, name, "{key: {u: 1}, name: \"u_1\", unique: true, sparse: true}").unwrap();
        }
        for step in 0..70 {
            let pair = [[A, "qa"], [B, "qb"]][random.below(2) as usize];
            let what = one_step(&db, &mut random, pair);
            for [shared, plain] in [[A, "qa"], [B, "qb"]] {
                assert_eq!(all(&db, shared), all(&db, plain), "seed {seed}, step {step}: {what}");
            }
            db.assert_valid("orders");
        }
    }
}

#[test]
fn sixteen_tenants_do_not_disturb_each_other() {
    let db = shop();
    let added = AtomicI64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..16u64 {
            let (db, added) = (&db, &added);
            scope.spawn(move || {
                let mut random = Random(thread);
                // Two threads a tenant.
                let name = format!("customer_{}_orders", thread / 2);
                for _ in 0..40 {
                    let id = random.below(6);
                    let done = db.update_with(&name, &format!("{{_id: {id}}}"), "{$inc: {n: 1}}", |u| u.upsert = true);
                    done.unwrap();
                    added.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let sum: i64 = db.find("orders", "{}").iter().map(|doc| int(doc.as_raw(), "n")).sum();
    assert_eq!(sum, added.load(Ordering::Relaxed));
    for tenant in 0..8 {
        let docs = db.find(&format!("customer_{tenant}_orders"), "{}");
        assert!(docs.iter().all(|doc| doc.as_raw().get_str("tenantId") == Some(&tenant.to_string())));
        assert_eq!(docs.iter().map(|doc| int(doc.as_raw(), "n")).sum::<i64>(), 80);
    }
    db.assert_valid("orders");
}
