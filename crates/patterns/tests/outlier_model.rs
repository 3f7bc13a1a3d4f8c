//! Random operations on a collection with the outlier pattern and on a plain one: the same replies, the same documents,
//! and the invariant after every step.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Db, Random, json, plain, projection};
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_store::{Mode, Want};
use espalier_value::DocBuf;

const OWNED: [&str; 3] = ["itemCount", "hasOverflow", "overflowCount"];

fn array(random: &mut Random, most: u64) -> String {
    let count = random.below(most + 1);
    let items: Vec<String> = (0..count).map(|_| item(random)).collect();
    format!("[{}]", items.join(", "))
}

fn item(random: &mut Random) -> String {
    match random.below(6) {
        0 => format!("{{k: {}, v: {}}}", random.below(4), random.below(4)),
        1 => format!("\"{}\"", ["a", "b", "c", "a rather long text that fills a batch"][random.below(4) as usize]),
        2 => "null".to_string(),
        _ => random.below(9).to_string(),
    }
}

fn filter(random: &mut Random) -> String {
    let id = random.below(5);
    match random.below(16) {
        0 => "{}".to_string(),
        1 => format!("{{items: {}}}", random.below(9)),
        2 => format!("{{items: {{$in: [{}, {}]}}}}", random.below(9), random.below(9)),
        3 => format!("{{items: {{$all: [{}, {}]}}}}", random.below(9), random.below(9)),
        4 => format!("{{items: {{$elemMatch: {{k: {}, v: {{$gte: {}}}}}}}}}", random.below(4), random.below(4)),
        5 => format!("{{items: {{$size: {}}}}}", random.below(12)),
        6 => format!("{{\"items.{}\": {}}}", random.below(10), random.below(9)),
        7 => format!("{{items: {{$ne: {}}}}}", random.below(9)),
        8 => format!("{{items: {{$nin: [{}, null]}}}}", random.below(9)),
        9 => format!("{{\"items.k\": {{$gt: {}}}, n: {{$lt: {}}}}}", random.below(4), random.below(9)),
        10 => format!("{{items: {{$not: {{$gt: {}}}}}}}", random.below(9)),
        11 => format!("{{$or: [{{items: {}}}, {{n: {}}}]}}", random.below(9), random.below(4)),
        12 => format!("{{n: {{$gte: {}}}}}", random.below(6)),
        _ => format!("{{_id: {id}}}"),
    }
}

fn update(random: &mut Random) -> String {
    let (a, b) = (random.below(12), random.below(12));
    match random.below(22) {
        0..=4 => format!("{{$push: {{items: {}}}}}", item(random)),
        5 | 6 => format!("{{$push: {{items: {{$each: {}}}}}, $inc: {{n: 1}}}}", array(random, 7)),
        7 => format!("{{$push: {{items: {{$each: {}, $position: {a}}}}}}}", array(random, 4)),
        8 => format!("{{$push: {{items: {{$each: {}, $slice: -{}}}}}}}", array(random, 3), a + 1),
        9 => format!("{{$push: {{items: {{$each: {}, $sort: 1}}}}}}", array(random, 3)),
        10 => format!("{{$addToSet: {{items: {}}}}}", item(random)),
        11 => format!("{{$addToSet: {{items: {{$each: {}}}}}}}", array(random, 4)),
        12 => format!("{{$pop: {{items: {}}}}}", if a < 6 { 1 } else { -1 }),
        13 => format!("{{$pull: {{items: {}}}}}", item(random)),
        14 => format!("{{$pull: {{items: {{$gte: {a}}}}}}}"),
        15 => format!("{{$set: {{\"items.{a}\": {b}}}}}"),
        16 => format!("{{$set: {{items: {}}}}}", array(random, 14)),
        17 => "{$unset: {items: 1}}".to_string(),
        18 => format!("{{$inc: {{n: {a}}}, $set: {{t: \"x\"}}}}"),
        19 => {
            format!("[{{$set: {{items: {{$concatArrays: [{{$ifNull: [\"$items\", []]}}, {}]}}}}}}]", array(random, 4))
        }
        20 => "{$rename: {items: \"kept\"}}".to_string(),
        _ => format!("{{n: {a}, items: {}}}", array(random, 12)),
    }
}

fn all(db: &Db, name: &str) -> Vec<DocBuf> {
    db.find(name, "{}").iter().map(|doc| plain(doc, &OWNED)).collect()
}

fn show(result: Result<impl std::fmt::Debug, espalier_value::Error>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{}", error.code().0),
    }
}

fn run(seed: u64, steps: usize, indexed: bool) {
    let mut random = Random(seed);
    let db = Db::new();
    let pattern = "{patterns: [{outlier: {array: \"items\", threshold: 4, batchSize: 3, batchBytes: 120}}]}";
    db.create("p", pattern).unwrap();
    db.create("q", "{}").unwrap();
    if indexed {
        for name in ["p", "q"] {
            let spec = json("{key: {items: 1}, name: \"items_1\"}");
            let spec = espalier_store::IndexSpec::parse(spec.as_raw()).unwrap();
            let mut tx = db.begin();
            tx.create_indexes(&common::ns(name), &[spec]).unwrap();
            tx.commit().unwrap();
        }
    }
    for step in 0..steps {
        let what = one_step(&db, &mut random);
        let (logical, expected) = (all(&db, "p"), all(&db, "q"));
        assert_eq!(logical, expected, "seed {seed}, step {step}: {what}");
        let report = db.validate("p", false);
        let valid = matches!(report.as_raw().get("valid"), Some(espalier_value::ValueRef::Bool(true)));
        assert!(valid, "seed {seed}, step {step}: {what}: {report:?}");
    }
}

fn one_step(db: &Db, random: &mut Random) -> String {
    match random.below(10) {
        0 | 1 => {
            let doc = format!("{{_id: {}, n: {}, items: {}}}", random.below(5), random.below(9), array(random, 14));
            let results = ["p", "q"].map(|name| {
                let done = db.insert(name, &[json(&doc)]).unwrap();
                (done.inserted, done.errors.first().map(|(at, error)| (*at, error.code().0)))
            });
            assert_eq!(results[0], results[1], "insert {doc}");
            format!("insert {doc}")
        }
        2 => {
            let (filter, multi) = (filter(random), random.below(3) == 0);
            // Which of several matches goes is not defined, so only one may match.
            let filter = if multi { filter } else { format!("{{_id: {}}}", random.below(5)) };
            let results = ["p", "q"].map(|name| show(db.delete(name, &filter, multi)));
            assert_eq!(results[0], results[1], "delete {filter}");
            format!("delete {filter}")
        }
        3 | 4 => {
            let (filter, slice) = (filter(random), random.below(3));
            let (skip, limit) = (random.below(12) as i64 - 4, random.below(6) + 1);
            let shown = ["p", "q"].map(|name| {
                let docs = db.find_with(name, &filter, |find| {
                    find.sort = Sort::parse(json("{_id: 1}").as_raw(), &Scope::default()).unwrap().map(Arc::new);
                    let page = format!(
                        "{{items: {{$slice: [{skip}, {limit}]}}, itemCount: 0, hasOverflow: 0, overflowCount: 0}}"
                    );
                    let text = match slice {
                        0 => page.clone(),
                        1 => format!("{{n: 1, items: {{$slice: [{skip}, {limit}]}}}}"),
                        _ => "{items: 1}".to_string(),
                    };
                    find.projection = projection(&text, &filter);
                });
                docs.unwrap()
            });
            assert_eq!(shown[0], shown[1], "find {filter} slice {skip}, {limit} ({slice})");
            let counts = ["p", "q"].map(|name| {
                let at = db.begin();
                let parsed = espalier_query::Filter::parse(json(&filter).as_raw(), &Default::default()).unwrap();
                let find = espalier_store::Find::new(Arc::new(parsed), common::context());
                at.count(&common::ns(name), &find).unwrap()
            });
            assert_eq!(counts[0], counts[1], "count {filter}");
            format!("find {filter}")
        }
        _ => {
            let (mut filter, text) = (filter(random), update(random));
            let (multi, upsert) = (random.below(4) == 0 && !text.starts_with("{n:"), random.below(5) == 0);
            if !multi {
                filter = format!("{{_id: {}}}", random.below(5));
            }
            let want = [Want::Nothing, Want::Before, Want::After][if multi { 0 } else { random.below(3) as usize }];
            let transaction = random.below(4) == 0;
            let results = ["p", "q"].map(|name| {
                let done = if transaction {
                    in_transaction(db, name, &filter, &text, multi, upsert, want)
                } else {
                    db.update_with(name, &filter, &text, |update| {
                        (update.multi, update.upsert, update.want) = (multi, upsert, want);
                    })
                };
                show(done.map(|done| {
                    let image = done.image.map(|image| plain(&image, &OWNED));
                    (done.matched, done.modified, done.upserted_id, image)
                }))
            });
            assert_eq!(results[0], results[1], "update {filter} with {text}, multi {multi}, upsert {upsert}");
            if multi && !results[0].starts_with('(') {
                // Which documents were updated before the one that could not be is not defined.
                for name in ["p", "q"] {
                    db.delete(name, "{}", true).unwrap();
                }
            }
            format!("update {filter} with {text}, multi {multi}, upsert {upsert}")
        }
    }
}

fn in_transaction(
    db: &Db,
    name: &str,
    filter: &str,
    text: &str,
    multi: bool,
    upsert: bool,
    want: Want,
) -> espalier_value::Result<espalier_store::Updated> {
    let mut tx = db.begin_as(Mode::Transaction, false);
    let mut update = common::update_spec(filter, text)?;
    (update.multi, update.upsert, update.want) = (multi, upsert, want);
    let done = tx.update(&common::ns(name), &update)?;
    // Own writes are visible before the commit.
    let (matched, inside) = (done.matched, common::find(&*tx, name, filter, |_| {})?.len() as u64);
    if matched > 0 && filter.starts_with("{_id") {
        assert_eq!(inside, 1, "{filter}");
    }
    tx.commit()?;
    Ok(done)
}

#[test]
fn is_the_same_as_a_plain_collection() {
    for seed in 0..25 {
        run(seed, 60, false);
    }
}

#[test]
fn is_the_same_with_an_index_on_the_array() {
    for seed in 1000..1020 {
        run(seed, 60, true);
    }
}
