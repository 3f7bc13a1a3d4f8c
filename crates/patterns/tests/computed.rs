//! The computed pattern by example: what hand-written summaries get wrong, and the pattern's own rules.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::reviews::{SUMMARY, add, field, review, shop, summary};
use common::{Db, Random, json, ns};
use espalier_store::Mode;
use espalier_value::{DocBuf, ValueRef};

#[test]
fn a_write_under_a_collation_is_about_each_document_it_finds() {
    let db = Db::new();
    let computed = "{computed: {from: \"reviews\", on: {p: \"_id\"}, into: \"s\", fields: {n: {$count: {}}}}}";
    db.create("products", &format!("{{patterns: [{computed}]}}")).unwrap();
    let docs = ["{_id: \"a\", v: 0, l: [1, 2]}", "{_id: \"A\", v: 0, l: [1, 2]}", "{_id: \"b\", v: 0, l: [1, 2]}"];
    db.insert("products", &docs.map(json)).unwrap();
    let collation = json("{locale: \"en\", strength: 2}");
    let collation = espalier_value::Collation::parse(collation.as_raw(), "").unwrap();
    let context = || std::sync::Arc::new(common::context().with_collation(collation.clone()));
    let filter = |text: &str| {
        let scope = espalier_query::expression::Scope::of(&context());
        std::sync::Arc::new(espalier_query::Filter::parse(json(text).as_raw(), &scope).unwrap())
    };
    for change in ["{$inc: {v: 1}}", "{$inc: {\"l.$\": 10}}"] {
        let done = db.update_with("products", "{}", change, |update| {
            update.multi = true;
            update.filter = filter("{_id: \"A\", l: 2}");
            update.context = context();
        });
        // The array's element is another after the first of the two.
        assert_eq!(done.unwrap().modified, 2, "{change}");
    }
    for id in ["a", "A"] {
        let found = db.find("products", &format!("{{_id: \"{id}\"}}"));
        assert!(found[0].as_raw().to_string().contains("v: 1, l: [ 1, 12 ]"), "{found:?}");
    }
    let mut tx = db.begin();
    let mut delete = common::delete_spec("{}", true).unwrap();
    (delete.filter, delete.context) = (filter("{_id: \"a\"}"), context());
    assert_eq!(tx.delete(&common::ns("products"), &delete).unwrap().deleted, 2);
    tx.commit().unwrap();
    assert_eq!(db.find("products", "{}").len(), 1);
    db.assert_valid("products");
}

#[test]
fn a1_a3_the_summary_commits_with_the_review() {
    let db = shop();
    db.insert("products", &[json("{_id: 1, name: \"bike\"}")]).unwrap();
    for (id, rating) in [(1, "5"), (2, "4"), (3, "4")] {
        add(&db, id, 1, rating);
    }
    assert_eq!(field(&db, 1, "totalCount"), "3");
    assert_eq!(field(&db, 1, "averageRating"), "4.3");
    assert_eq!(field(&db, 1, "ratingDistribution"), json("{\"4\": 2, \"5\": 1}").as_raw().to_string());
    assert_eq!(field(&db, 1, "best"), "5");
    assert_eq!(field(&db, 1, "worst"), "4");
    assert_eq!(field(&db, 1, "total"), "13");
    assert_eq!(field(&db, 1, "latest"), "\"t3\"");
    db.assert_valid("products");
}

#[test]
fn d1_a_parent_without_children_has_an_empty_summary() {
    let db = shop();
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    assert_eq!(field(&db, 1, "totalCount"), "0");
    assert_eq!(field(&db, 1, "averageRating"), "null");
    assert_eq!(field(&db, 1, "total"), "0");
    add(&db, 1, 1, "2");
    db.delete("reviews", "{_id: 1}", false).unwrap();
    assert_eq!(field(&db, 1, "totalCount"), "0");
    assert_eq!(field(&db, 1, "best"), "null");
    assert_eq!(field(&db, 1, "latest"), "null");
    db.assert_valid("products");
}

#[test]
fn d3_edits_and_deletes_of_reviews_adjust_everything() {
    let db = shop();
    db.insert("products", &[json("{_id: 1}"), json("{_id: 2}")]).unwrap();
    for id in 1..=10 {
        add(&db, id, 1, &(1 + id % 5).to_string());
    }
    db.update("reviews", "{_id: 4}", "{$set: {rating: 1}}").unwrap();
    assert_eq!(field(&db, 1, "best"), "5");
    db.delete("reviews", "{rating: 5}", true).unwrap();
    assert_eq!(field(&db, 1, "best"), "4");
    // A review that moves to another product adjusts both.
    db.update("reviews", "{_id: 1}", "{$set: {productId: 2}}").unwrap();
    assert_eq!(field(&db, 2, "totalCount"), "1");
    db.assert_valid("products");
    // What does not matter is not counted again.
    let before = summary(&db, 1);
    db.update("reviews", "{_id: 2}", "{$set: {text: \"x\"}}").unwrap();
    assert_eq!(summary(&db, 1), before);
}

#[test]
fn d3_rounded_averages_do_not_drift() {
    let db = shop();
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    let docs: Vec<DocBuf> = (0..110).map(|id| review(id, 1, if id < 11 { "3" } else { "4" })).collect();
    db.insert("reviews", &docs).unwrap();
    assert_eq!(field(&db, 1, "averageRating"), "3.9");
    add(&db, 200, 1, "5");
    assert_eq!(field(&db, 1, "averageRating"), "3.9");
    for id in 201..=230 {
        add(&db, id, 1, "3.25");
        db.delete("reviews", &format!("{{_id: {id}}}"), false).unwrap();
    }
    assert_eq!(field(&db, 1, "averageRating"), "3.9");
    assert_eq!(field(&db, 1, "total"), "434");
    db.assert_valid("products");
}

#[test]
fn a4_a_parent_that_comes_later_gets_its_summary_when_it_appears() {
    let db = shop();
    add(&db, 1, 7, "5");
    add(&db, 2, 7, "3");
    add(&db, 3, 8, "1");
    db.insert("products", &[json("{_id: 7, name: \"late\"}")]).unwrap();
    assert_eq!(field(&db, 7, "totalCount"), "2");
    assert_eq!(field(&db, 7, "averageRating"), "4.0");
    // Also by an upsert.
    db.update_with("products", "{_id: 8}", "{$set: {name: \"up\"}}", |update| update.upsert = true).unwrap();
    assert_eq!(field(&db, 8, "totalCount"), "1");
    // And one that goes and comes back.
    db.delete("products", "{_id: 7}", false).unwrap();
    add(&db, 4, 7, "4");
    db.insert("products", &[json("{_id: 7}")]).unwrap();
    assert_eq!(field(&db, 7, "totalCount"), "3");
    db.assert_valid("products");
}

#[test]
fn owned_fields_are_the_patterns_alone() {
    let db = shop();
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    add(&db, 1, 1, "5");
    for update in [
        "{$set: {\"reviewSummary.totalCount\": 9}}",
        "{$set: {reviewSummary: {}}}",
        "{$unset: {\"reviewSummary.best\": 1}}",
        "{$inc: {\"reviewSummary.totalCount\": 1}}",
        "{$rename: {reviewSummary: \"x\"}}",
        "[{$set: {\"reviewSummary.totalCount\": 9}}]",
        "[{$unset: \"reviewSummary\"}]",
        "{_id: 1, reviewSummary: {totalCount: 7}}",
    ] {
        let error = db.update("products", "{_id: 1}", update).unwrap_err();
        assert!(error.message().contains("belongs to the pattern 'computed'"), "{update}: {error:?}");
    }
    let refused = db.insert("products", &[json("{_id: 2, reviewSummary: {totalCount: 110}}")]).unwrap();
    assert!(refused.errors[0].1.message().contains("reviewSummary.totalCount"));
    // Fields beside them are anybody's, and a replacement keeps what is the pattern's.
    db.update("products", "{_id: 1}", "{$set: {\"reviewSummary.note\": 1}}").unwrap();
    db.update("products", "{_id: 1}", "{name: \"new\"}").unwrap();
    assert_eq!(field(&db, 1, "totalCount"), "1");
    db.update("products", "{_id: 1}", "[{$set: {name: \"newer\"}}]").unwrap();
    db.assert_valid("products");
}

#[test]
fn declared_on_data_it_fills_in_and_dropped_it_leaves_the_fields() {
    let db = Db::new();
    let products: Vec<DocBuf> =
        (0..20).map(|id| json(&format!("{{_id: {id}, reviewSummary: {{totalCount: 77}}}}"))).collect();
    db.insert("products", &products).unwrap();
    let reviews: Vec<DocBuf> = (0..200).map(|id| review(id, id % 20, &(id % 6).to_string())).collect();
    db.insert("reviews", &reviews).unwrap();
    db.modify("products", SUMMARY).unwrap();
    db.assert_valid("products");
    assert_eq!(field(&db, 3, "totalCount"), "10");
    db.modify("products", "{patterns: []}").unwrap();
    add(&db, 1_000, 3, "1");
    assert_eq!(field(&db, 3, "totalCount"), "10");
    db.update("products", "{_id: 3}", "{$set: {\"reviewSummary.totalCount\": 0}}").unwrap();
}

#[test]
fn a_document_that_cannot_have_the_fields_keeps_the_pattern_out() {
    let db = Db::new();
    db.insert("products", &[json("{_id: 1}"), json("{_id: 2, reviewSummary: 5}")]).unwrap();
    let error = db.modify("products", SUMMARY).unwrap_err();
    assert!(error.message().contains("reviewSummary"), "{error:?}");
    // It is as if nobody had asked.
    db.update("products", "{_id: 1}", "{$set: {\"reviewSummary.totalCount\": 9}}").unwrap();
    add(&db, 1, 1, "5");
    assert_eq!(db.find("products", "{\"reviewSummary.totalCount\": 9}").len(), 1);
}

#[test]
fn validate_finds_what_is_wrong_and_repair_mends_it() {
    let db = shop();
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    add(&db, 1, 1, "5");
    let mut tx = db.begin_as(Mode::Auto, true);
    let spec = common::update_spec("{_id: 1}", "{$set: {\"reviewSummary.totalCount\": 9}}").unwrap();
    tx.update(&ns("products"), &spec).unwrap();
    tx.commit().unwrap();
    let report = db.validate("products", false);
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(false))), "{report:?}");
    db.validate("products", true);
    db.assert_valid("products");
    assert_eq!(field(&db, 1, "totalCount"), "1");
}

#[test]
fn bad_declarations_are_refused_with_their_place() {
    let db = Db::new();
    for (declaration, place) in [
        ("{from: \"r\", on: {a: \"_id\"}, into: \"s\"}", "patterns.0.computed.fields"),
        ("{from: \"r\", on: {}, into: \"s\", fields: {n: {$count: {}}}}", "patterns.0.computed.on"),
        ("{from: \"r\", on: {a: 1}, into: \"s\", fields: {n: {$count: {}}}}", "patterns.0.computed.on.a"),
        (
            "{from: \"r\", on: {a: \"_id\"}, into: \"s\", fields: {n: {$median: \"$x\"}}}",
            "patterns.0.computed.fields.n",
        ),
        ("{from: \"r\", on: {a: \"_id\"}, into: \"s\", fields: {n: {$first: \"$x\"}}}", "fields.n.sort"),
        ("{from: \"r\", on: {a: \"_id\"}, into: \"s\", fields: {n: {$avg: \"$x\", round: \"a\"}}}", "fields.n.round"),
        ("{from: \"r\", on: {a: \"_id\"}, into: \"s\", fields: {n: {$sum: {$rand: {}}}}}", "fields.n"),
        ("{from: \"r\", on: {a: \"_id\"}, into: \"s\", fields: {n: {$count: {}}}, often: 1}", "computed.often"),
        ("{from: \"r\", on: {a: \"_id\"}, into: \"s\", fields: {n: {$count: {}}}, freshness: \"x\"}", "freshness"),
    ] {
        let error = db.create("p", &format!("{{patterns: [{{computed: {declaration}}}]}}")).unwrap_err();
        assert!(error.message().contains(place), "{declaration}: {error:?}");
        assert!(db.begin().collection(&ns("p")).unwrap().is_none());
    }
}

#[test]
fn in_a_transaction_the_summary_is_seen_at_once_and_goes_with_it() {
    let db = shop();
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    let mut tx = db.begin_as(Mode::Transaction, false);
    common::insert(&mut *tx, "reviews", &[review(1, 1, "5")]).unwrap();
    let seen = common::find(&*tx, "products", "{\"reviewSummary.totalCount\": 1}", |_| {}).unwrap();
    assert_eq!(seen.len(), 1);
    tx.abort();
    assert_eq!(field(&db, 1, "totalCount"), "0");
    db.assert_valid("products");
}

/// Sixteen clients write reviews and products while a reader checks every snapshot.
#[test]
fn c2_d2_concurrent_writers_lose_no_update() {
    let db = Arc::new(shop());
    db.insert("products", &(0..4).map(|id| json(&format!("{{_id: {id}}}"))).collect::<Vec<_>>()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..16)
            .map(|client| {
                let db = db.clone();
                scope.spawn(move || {
                    let mut random = Random(client as u64);
                    for i in 0..40 {
                        let id = client * 1_000 + i;
                        let product = random.below(6);
                        match random.below(8) {
                            0 => assert!(db.delete("reviews", &format!("{{_id: {}}}", id - 3), false).unwrap() <= 1),
                            1 => drop(
                                db.update("reviews", &format!("{{_id: {}}}", id - 2), "{$set: {rating: 9}}").unwrap(),
                            ),
                            2 => {
                                let to = format!("{{$set: {{productId: {product}}}}}");
                                drop(db.update("reviews", &format!("{{_id: {}}}", id - 1), &to).unwrap());
                            }
                            3 => {
                                // Products that come and go.
                                let late = 4 + random.below(2);
                                if random.below(2) == 0 {
                                    drop(db.insert("products", &[json(&format!("{{_id: {late}}}"))]).unwrap());
                                } else {
                                    db.delete("products", &format!("{{_id: {late}}}"), false).unwrap();
                                }
                            }
                            _ => add(&db, id, product as i32, &random.below(6).to_string()),
                        }
                    }
                })
            })
            .collect();
        let reader = {
            let (db, stop) = (db.clone(), &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    db.assert_valid("products");
                }
            })
        };
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    db.assert_valid("products");
}
