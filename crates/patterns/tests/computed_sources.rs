//! The computed pattern and what it reads: sources that are dropped, renamed or linked otherwise, and chains of patterns.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::reviews::{SUMMARY, add, field, review, shop};
use common::{Db, json, ns};
use espalier_store::Store;
use espalier_value::{Code, ValueRef};

fn rename(db: &Db, from: &str, to: &str, drop_target: bool) -> espalier_value::Result<()> {
    let mut tx = db.begin();
    tx.rename(&ns(from), &ns(to), drop_target)?;
    tx.commit().map(drop)
}

#[test]
fn dropping_the_source_empties_every_summary() {
    let db = shop();
    db.insert("products", &[json("{_id: 1}"), json("{_id: 2}")]).unwrap();
    add(&db, 1, 1, "5");
    add(&db, 2, 2, "5");
    let mut tx = db.begin();
    assert!(tx.drop_collection(&ns("reviews")).unwrap());
    tx.commit().unwrap();
    assert_eq!(field(&db, 1, "totalCount"), "0");
    add(&db, 3, 2, "4");
    assert_eq!(field(&db, 2, "totalCount"), "1");
    db.assert_valid("products");
}

fn drop_collection(db: &Db, name: &str) {
    let mut tx = db.begin();
    tx.drop_collection(&ns(name)).unwrap();
    tx.commit().unwrap();
}

#[test]
fn a_renamed_source_is_followed_under_its_new_name() {
    let db = shop();
    // Each reads the other, in different fields.
    db.modify(
        "reviews",
        "{patterns: [{reference: {from: \"products\", on: {productId: \"_id\"}, into: \"product\", fields: [\"name\"]}}]}",
    )
    .unwrap();
    db.insert("products", &[json("{_id: 1, name: \"a\"}")]).unwrap();
    add(&db, 1, 1, "5");
    db.insert("archive", &[json("{_id: 1}")]).unwrap();
    for drop_target in [false, true] {
        let exists = rename(&db, "reviews", "archive", drop_target).unwrap_err();
        assert_eq!(exists.code(), Code::NamespaceExists);
    }
    assert_eq!(field(&db, 1, "totalCount"), "1");
    drop_collection(&db, "archive");
    rename(&db, "reviews", "archive", false).unwrap();
    let declared = db.begin().collection(&ns("products")).unwrap().unwrap().options.listed;
    assert!(declared.as_raw().to_string().contains("from: \"archive\""), "{declared:?}");
    db.insert("archive", &[review(2, 1, "3")]).unwrap();
    assert_eq!(field(&db, 1, "totalCount"), "2");
    db.update("products", "{_id: 1}", "{$set: {name: \"b\"}}").unwrap();
    assert_eq!(db.find("archive", "{\"product.name\": \"b\"}").len(), 2);
    // A new collection with the old name is another one.
    db.insert("reviews", &[review(9, 1, "1")]).unwrap();
    assert_eq!(field(&db, 1, "totalCount"), "2");
    for name in ["products", "archive"] {
        db.assert_valid(name);
    }
    // And back, by the other side's name, too.
    rename(&db, "products", "goods", false).unwrap();
    db.update("goods", "{_id: 1}", "{$set: {name: \"c\"}}").unwrap();
    db.delete("archive", "{_id: 1}", false).unwrap();
    assert_eq!(db.find("goods", "{\"reviewSummary.totalCount\": 1}").len(), 1);
    assert_eq!(db.find("archive", "{\"product.name\": \"c\"}").len(), 1);
    db.assert_valid("goods");
    db.assert_valid("archive");
}

#[test]
fn a_rename_that_a_source_is_in_the_way_of_is_refused() {
    let db = shop();
    db.insert("other", &[json("{_id: 1}")]).unwrap();
    let error = rename(&db, "other", "reviews", true).unwrap_err();
    assert!(error.message().contains("source of a pattern"), "{error:?}");
    let error = rename(&db, "reviews", "products", true).unwrap_err();
    assert!(error.message().contains("has patterns"), "{error:?}");
    let elsewhere = espalier_store::Namespace::new("elsewhere", "reviews");
    let error = db.begin().rename(&ns("reviews"), &elsewhere, false).unwrap_err();
    assert!(error.message().contains("another database"), "{error:?}");
}

#[test]
fn writes_that_meet_the_rename_of_their_source_are_counted_once() {
    let db = Arc::new(shop());
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    add(&db, 0, 1, "1");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (db, stop) = (&db, &stop);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    // Whichever is the source: what is inserted into the other is nobody's.
                    let name = if number % 2 == 0 { "reviews" } else { "opinions" };
                    let docs = [review(1 + client + 4 * number, 1, "2")];
                    match db.insert(name, &docs) {
                        // It was made for this, and dropped before it was used.
                        Err(error) if error.code() == Code::NamespaceNotFound => {}
                        done => drop(done.unwrap()),
                    }
                }
            });
        }
        let names = [("reviews", "opinions"), ("opinions", "reviews")];
        let mut done = Vec::new();
        for (from, to) in names.iter().cycle().take(40) {
            // Somebody makes a collection with the name at any time.
            let renamed = loop {
                drop_collection(&db, to);
                match rename(&db, from, to, false) {
                    Err(error) if error.code() == Code::NamespaceExists => {}
                    done => break done,
                }
            };
            done.push((renamed, db.validate("products", false)));
        }
        stop.store(true, Ordering::Relaxed);
        for (renamed, report) in done {
            renamed.unwrap();
            assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(true))), "{report:?}");
        }
    });
    db.assert_valid("products");
}

#[test]
fn a_flush_of_counters_is_followed() {
    for read in ["exact", "flushed"] {
        let db = Db::new();
        db.create(
            "products",
            &format!(
                "{{patterns: [{{approximate: {{fields: [\"m.views\"], flush: {{count: 1000, within: \"1h\"}}, \
                 stamp: \"m.at\", read: \"{read}\"}}}}]}}"
            ),
        )
        .unwrap();
        db.create(
            "brands",
            "{patterns: [{computed: {from: \"products\", on: {brand: \"_id\"}, into: \"all\", \
             fields: {last: {$max: \"$m.at\"}, views: {$sum: \"$m.views\"}}}}]}",
        )
        .unwrap();
        db.insert("brands", &[json("{_id: 1}")]).unwrap();
        db.insert("products", &[json("{_id: 1, brand: 1, m: {views: 0}}")]).unwrap();
        for _ in 0..3 {
            db.update("products", "{_id: 1}", "{$inc: {\"m.views\": 1}}").unwrap();
        }
        db.assert_valid("brands");
        db.store.run_pattern(&ns("products"), &common::context()).unwrap();
        let brands = db.find("brands", "{\"all.views\": 3, \"all.last\": {$gt: date(0)}}");
        assert_eq!(brands.len(), 1, "{read}: {:?}", db.find("brands", "{}"));
        db.assert_valid("brands");
    }
}

#[test]
fn a_renamed_collection_keeps_its_summaries() {
    let db = shop();
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    let mut tx = db.begin();
    tx.rename(&ns("products"), &ns("goods"), false).unwrap();
    tx.commit().unwrap();
    add(&db, 1, 1, "5");
    db.assert_valid("goods");
    assert_eq!(db.find("goods", "{\"reviewSummary.totalCount\": 1}").len(), 1);
}

#[test]
fn a_chain_follows_to_its_end_and_a_circle_is_refused() {
    let db = shop();
    db.create(
        "brands",
        "{patterns: [{computed: {from: \"products\", on: {brand: \"_id\"}, into: \"all\", \
         fields: {reviews: {$sum: \"$reviewSummary.totalCount\"}, products: {$count: {}}}}}]}",
    )
    .unwrap();
    db.insert("brands", &[json("{_id: \"b\"}")]).unwrap();
    db.insert("products", &[json("{_id: 1, brand: \"b\"}"), json("{_id: 2, brand: \"b\"}")]).unwrap();
    add(&db, 1, 1, "5");
    add(&db, 2, 2, "5");
    add(&db, 3, 2, "5");
    assert_eq!(db.find("brands", "{\"all.reviews\": 3, \"all.products\": 2}").len(), 1);
    db.delete("reviews", "{_id: 2}", false).unwrap();
    assert_eq!(db.find("brands", "{\"all.reviews\": 2}").len(), 1);
    db.assert_valid("brands");
    let circle = "{patterns: [{computed: {from: \"brands\", on: {productId: \"_id\"}, into: \"x\", \
                  fields: {n: {$sum: \"$all.reviews\"}}}}]}";
    // products <- brands <- products: what brands keep comes from what products keep.
    let both = SUMMARY.replace("{patterns: [", "").replace("]}", "");
    let first = circle.replace("{patterns: [", "").replace("]}", "");
    let closed = format!("{{patterns: [{both}, {}]}}", first.replace("\"x\"", "\"reviewSummary.up\""));
    let error = db.modify("products", &closed).unwrap_err();
    assert!(error.message().contains("circle"), "{error:?}");
    let error = db
        .modify(
            "products",
            "{patterns: [{computed: {from: \"products\", on: {a: \"_id\"}, into: \"x\", \
         fields: {n: {$count: {}}}}}]}",
        )
        .unwrap_err();
    assert!(error.message().contains("patterns.0.computed.from"), "{error:?}");
}

#[test]
fn linked_by_another_field_every_document_with_the_value_follows() {
    let db = Db::new();
    db.create(
        "shops",
        "{patterns: [{computed: {from: \"sales\", on: {city: \"city\"}, into: \"sold\", fields: {n: {$count: {}}}}}]}",
    )
    .unwrap();
    db.insert("shops", &[json("{_id: 1, city: \"Bern\"}"), json("{_id: 2, city: \"Bern\"}"), json("{_id: 3}")])
        .unwrap();
    db.insert("sales", &[json("{_id: 1, city: \"Bern\"}"), json("{_id: 2, city: \"Thun\"}")]).unwrap();
    assert_eq!(db.find("shops", "{\"sold.n\": 1}").len(), 2);
    db.update("shops", "{_id: 2}", "{$set: {city: \"Thun\"}}").unwrap();
    db.insert("sales", &[json("{_id: 3, city: \"Thun\"}")]).unwrap();
    assert_eq!(db.find("shops", "{_id: 2, \"sold.n\": 2}").len(), 1);
    db.assert_valid("shops");
}

#[test]
fn sources_and_targets_may_have_layouts() {
    let db = Db::new();
    db.create("reviews", "{patterns: [{outlier: {array: \"tags\", threshold: 3, batchSize: 3}}]}").unwrap();
    let with_layout =
        SUMMARY.replace("{patterns: [", "{patterns: [{outlier: {array: \"pictures\", threshold: 2, batchSize: 2}}, ");
    db.create("products", &with_layout).unwrap();
    db.insert("products", &[json("{_id: 1, pictures: [1, 2, 3, 4, 5]}")]).unwrap();
    add(&db, 1, 1, "5");
    db.update("reviews", "{_id: 1}", "{$push: {tags: {$each: [1, 2, 3, 4, 5]}}}").unwrap();
    db.update("reviews", "{_id: 1}", "{$set: {rating: 2}}").unwrap();
    db.update("products", "{_id: 1}", "{$push: {pictures: 6}}").unwrap();
    assert_eq!(field(&db, 1, "best"), "2");
    db.assert_valid("products");
    db.assert_valid("reviews");
}
