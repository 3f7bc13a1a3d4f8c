//! Random writes to a source and to the documents it is summed up in, whatever their layouts; after each the fields are
//! compared with what this file computes of the documents by itself.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Db, Random, json, ns};
use espalier_store::{Mode, Want};
use espalier_value::number::Number;
use espalier_value::{DocBuf, RawDoc, ValueRef};

const DERIVED: &str = "{computed: {from: \"reviews\", on: {productId: \"_id\"}, into: \"s\", \
    fields: {n: {$count: {}}, sum: {$sum: \"$rating\"}, best: {$max: \"$rating\"}, by: {$countBy: \"$rating\"}, \
    newest: {$first: \"$rating\", sort: {at: -1}}}}}, \
    {subset: {from: \"reviews\", on: {productId: \"_id\"}, into: \"s.top\", sort: {rating: -1}, limit: 2, \
    fields: [\"rating\"]}}";

fn text(value: Option<ValueRef<'_>>) -> String {
    value.map_or("missing".to_string(), |value| value.to_string())
}

fn number(doc: RawDoc<'_>, name: &str) -> f64 {
    doc.get(name).and_then(Number::of).map_or(0.0, Number::to_f64)
}

/// What the product's fields are to be, from the reviews alone.
fn expected(reviews: &[DocBuf], product: ValueRef<'_>) -> Vec<(&'static str, String)> {
    let own = |doc: &&DocBuf| doc.as_raw().get("productId").is_some_and(|id| id.to_string() == product.to_string());
    let mut mine: Vec<RawDoc<'_>> = reviews.iter().filter(own).map(|doc| doc.as_raw()).collect();
    let sum: f64 = mine.iter().map(|doc| number(*doc, "rating")).sum();
    let mut by: BTreeMap<i64, i32> = BTreeMap::new();
    mine.iter().for_each(|doc| *by.entry(number(*doc, "rating") as i64).or_default() += 1);
    let mut counts = DocBuf::new();
    by.iter().for_each(|(rating, count)| {
        counts.append(&rating.to_string(), *count);
    });
    let best = mine.iter().map(|doc| number(*doc, "rating") as i64).max();
    mine.sort_by(|a, b| {
        let key = |doc: &RawDoc<'_>| (number(*doc, "at"), number(*doc, "_id"));
        key(b).0.total_cmp(&key(a).0).then(key(a).1.total_cmp(&key(b).1))
    });
    let newest = mine.first().map(|doc| number(*doc, "rating") as i64);
    mine.sort_by(|a, b| {
        let key = |doc: &RawDoc<'_>| (number(*doc, "rating"), number(*doc, "_id"));
        key(b).0.total_cmp(&key(a).0).then(key(a).1.total_cmp(&key(b).1))
    });
    let top: Vec<String> = mine.iter().take(2).map(|doc| format!("{}", number(*doc, "_id"))).collect();
    let or_null = |value: Option<i64>| value.map_or("null".to_string(), |value| value.to_string());
    vec![
        ("n", mine.len().to_string()),
        ("sum", (sum as i64).to_string()),
        ("best", or_null(best)),
        ("by", ValueRef::Document(counts.as_raw()).to_string()),
        ("newest", or_null(newest)),
        ("top", top.join(" ")),
    ]
}

fn check(db: &Db, step: &str) {
    // Archived reviews are reviews.
    let mut reviews = db.find("reviews", "{}");
    if db.begin().collection(&ns("reviewsArchive")).unwrap().is_some() {
        reviews.extend(db.find("reviewsArchive", "{}"));
        // A union has shown them already.
        let mut seen = BTreeSet::new();
        reviews.retain(|doc| seen.insert(number(doc.as_raw(), "_id") as i64));
    }
    for product in db.find("products", "{}") {
        let id = product.as_raw().get("_id").unwrap();
        let summary = product.as_raw().get_doc("s").unwrap_or_else(|| panic!("{step}: {product:?}"));
        for (name, wanted) in expected(&reviews, id) {
            let is = match (name, summary.get(name)) {
                ("top", Some(ValueRef::Array(list))) => {
                    let ids: Vec<String> =
                        list.iter().map(|entry| number(entry.as_doc().unwrap(), "_id").to_string()).collect();
                    ids.join(" ")
                }
                (_, value) => text(value),
            };
            assert_eq!(is, wanted, "{step}: {name} of product {id}");
        }
    }
}

fn review(random: &mut Random, id: i32) -> DocBuf {
    let (product, rating, at) = (random.below(5), random.below(6), random.below(100));
    json(&format!("{{_id: {id}, productId: {product}, rating: {rating}, at: {at}, d: date({at})}}"))
}

/// One random step, and what it was.
fn step(db: &Db, random: &mut Random, next: &mut i32) -> String {
    let some = random.below(*next as u64 + 1);
    let product = random.below(5);
    match random.below(14) {
        0..=3 => {
            *next += 1;
            db.insert("reviews", &[review(random, *next)]).unwrap();
            format!("insert {next}")
        }
        4 => {
            let docs: Vec<DocBuf> = (0..random.below(6) as i32).map(|i| review(random, *next + i)).collect();
            // The first may be there already; then none is stored.
            let done = db.insert("reviews", &docs).unwrap();
            *next += docs.len() as i32;
            format!("insert {} of {}", done.inserted, docs.len())
        }
        5 => format!("delete {:?}", db.delete("reviews", &format!("{{_id: {some}}}"), false)),
        6 => format!("delete many {:?}", db.delete("reviews", &format!("{{rating: {}}}", random.below(6)), true)),
        7 => {
            let update = format!("{{$set: {{rating: {}, at: {}}}}}", random.below(6), random.below(100));
            format!("set {:?}", db.update("reviews", &format!("{{_id: {some}}}"), &update))
        }
        8 => {
            let update = format!("{{$set: {{productId: {product}}}}}");
            format!("move {:?}", db.update("reviews", &format!("{{_id: {some}}}"), &update))
        }
        9 => {
            let filter = format!("{{productId: {product}}}");
            let done = db.update_with("reviews", &filter, "{$inc: {rating: 1}}", |update| update.multi = true);
            format!("inc many {done:?}")
        }
        10 => {
            let update = "[{$set: {rating: {$mod: [{$add: [\"$rating\", 1]}, 6]}}}]";
            let done =
                db.update_with("reviews", &format!("{{_id: {some}}}"), update, |update| update.want = Want::After);
            format!("pipeline {done:?}")
        }
        11 => match random.below(3) {
            0 => format!("product {:?}", db.insert("products", &[json(&format!("{{_id: {product}}}"))])),
            1 => format!("no product {:?}", db.delete("products", &format!("{{_id: {product}}}"), false)),
            _ => {
                let done = db.update_with("products", &format!("{{_id: {product}}}"), "{name: \"r\"}", |update| {
                    update.upsert = true;
                });
                format!("replace product {done:?}")
            }
        },
        12 => {
            // A transaction, kept or not.
            let mut tx = db.begin_as(Mode::Transaction, false);
            *next += 1;
            common::insert(&mut *tx, "reviews", &[review(random, *next)]).unwrap();
            let delete = common::delete_spec(&format!("{{_id: {some}}}"), false).unwrap();
            tx.delete(&ns("reviews"), &delete).unwrap();
            match random.below(2) {
                0 => tx.abort(),
                _ => drop(tx.commit().unwrap()),
            }
            "transaction".to_string()
        }
        _ => {
            use espalier_store::Store;
            format!("run {:?}", db.store.run_pattern(&ns("reviews"), &common::context()))
        }
    }
}

fn run(seed: u64, steps: usize, reviews: &str, products: &str) {
    let db = Db::new();
    if !reviews.is_empty() {
        db.create("reviews", &format!("{{patterns: [{reviews}]}}")).unwrap();
    }
    let layout = if products.is_empty() { String::new() } else { format!("{products}, ") };
    db.create("products", &format!("{{patterns: [{layout}{DERIVED}]}}")).unwrap();
    let mut random = Random(seed);
    let mut next = 0;
    for at in 0..steps {
        let what = step(&db, &mut random, &mut next);
        check(&db, &format!("seed {seed}, step {at}: {what}"));
        if at % 20 == 0 {
            db.assert_valid("products");
        }
    }
    db.assert_valid("products");
}

#[test]
fn plain_collections() {
    for seed in 1..=6 {
        run(seed, 150, "", "");
    }
}

#[test]
fn an_overflowed_source_and_target() {
    let outlier = |array: &str| format!("{{outlier: {{array: \"{array}\", threshold: 2, batchSize: 2}}}}");
    for seed in 11..=13 {
        run(seed, 120, &outlier("tags"), &outlier("pictures"));
    }
}

#[test]
fn a_bucketed_source() {
    for seed in 21..=23 {
        run(seed, 120, "{bucket: {by: [\"productId\"], time: \"d\", every: \"1h\"}}", "");
    }
}

#[test]
fn an_archived_source() {
    for seed in 31..=33 {
        run(seed, 120, "{archive: {when: {rating: 0}, every: \"1h\", read: \"union\"}}", "");
        run(seed, 120, "{archive: {when: {rating: 0}, every: \"1h\"}}", "");
    }
}
