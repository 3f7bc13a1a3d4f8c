//! Random operations on a collection with the bucket pattern and on a plain one: the same replies, the same documents,
//! and the invariant after every step.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Db, Random, json, ns};
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_store::{Mode, Updated, Want};
use espalier_value::DocBuf;

/// Readings of ids 0 to 29, of few sensors, in a few hours: buckets are shared, filled and emptied.
fn reading(random: &mut Random, id: Option<u64>) -> String {
    let id = id.map_or(String::new(), |id| format!("_id: {id}, "));
    let by = match random.below(9) {
        0 => "s: null, ",
        1 => "",
        2 => "s: 1.0, ",
        3 => "s: long(1), ",
        4 | 5 => "s: 2, ",
        _ => "s: 1, ",
    };
    let (minute, value) = (random.below(240), value(random));
    match random.below(6) {
        // Not in the usual order.
        0 => format!("{{{id}ts: date({minute}), {by}v: {value}}}"),
        1 => format!("{{{id}{by}ts: date({minute})}}"),
        2 => format!("{{{id}{by}ts: date({minute}), v: {value}, note: \"a rather long text that fills a bucket\"}}"),
        _ => format!("{{{id}{by}ts: date({minute}), v: {value}, w: [{}, {}]}}", random.below(5), random.below(5)),
    }
}

fn value(random: &mut Random) -> String {
    match random.below(7) {
        0 => "null".to_string(),
        1 => "\"broken\"".to_string(),
        2 => format!("{}.{}", random.below(20), random.below(9) + 1),
        3 => format!("decimal({}.25)", random.below(20)),
        4 => format!("long({})", random.below(20)),
        _ => random.below(20).to_string(),
    }
}

fn filter(random: &mut Random) -> String {
    let (a, b) = (random.below(240), random.below(90));
    match random.below(20) {
        0 => "{}".to_string(),
        1 => format!("{{s: {}}}", random.below(3)),
        2 => "{s: null}".to_string(),
        3 => format!("{{s: {{$in: [1, null]}}, ts: {{$gte: date({a})}}}}"),
        4 => format!("{{s: 1, ts: {{$gte: date({a}), $lt: date({})}}}}", a + b),
        5 => format!("{{ts: {{$gt: date({a}), $lte: date({})}}}}", a + b),
        6 => format!("{{ts: date({a})}}"),
        7 => format!("{{ts: {{$in: [date({a}), date({b}), 5, null]}}}}"),
        8 => format!("{{v: {}}}", random.below(20)),
        9 => format!("{{v: {{$gt: {}}}}}", random.below(20)),
        10 => format!("{{w: {{$in: [{}, {}]}}}}", random.below(5), random.below(5)),
        11 => format!("{{$or: [{{s: 1, ts: {{$lt: date({a})}}}}, {{_id: {}}}]}}", random.below(30)),
        12 => format!("{{$or: [{{s: 2}}, {{v: {}}}]}}", random.below(20)),
        13 => format!("{{s: {{$ne: 1}}, ts: {{$not: {{$lt: date({a})}}}}}}"),
        14 => "{s: {$exists: false}}".to_string(),
        15 => "{s: {$type: \"long\"}}".to_string(),
        16 => format!("{{_id: {{$in: [{}, {}]}}}}", random.below(30), random.below(30)),
        17 => format!("{{v: null, w: {{$size: 2}}, ts: {{$lt: date({a})}}}}"),
        18 => format!("{{s: {{$gte: 1}}, \"w.0\": {}}}", random.below(5)),
        _ => format!("{{_id: {}}}", random.below(30)),
    }
}

fn update(random: &mut Random) -> String {
    let a = random.below(240);
    match random.below(14) {
        0 | 1 => format!("{{$set: {{v: {}}}}}", value(random)),
        2 => format!("{{$set: {{ts: date({a})}}}}"),
        3 => format!("{{$set: {{s: {}}}}}", random.below(3)),
        4 => format!("{{$set: {{s: {}, ts: date({a})}}, $unset: {{v: 1}}}}", random.below(3)),
        5 => "{$unset: {s: 1}}".to_string(),
        6 => format!("{{$push: {{w: {}}}}}", random.below(5)),
        7 => "{$inc: {v: 1}}".to_string(),
        8 => "{$unset: {ts: 1}}".to_string(),
        9 => "{$set: {ts: \"noon\"}}".to_string(),
        10 => format!("[{{$set: {{v: {{$add: [{{$ifNull: [\"$w.0\", 1]}}, {a}]}}}}}}]"),
        11 => "{$rename: {v: \"u\"}}".to_string(),
        12 => "{$set: {note: \"this makes the reading so much longer that it may have to leave\"}}".to_string(),
        _ => reading(random, None),
    }
}

/// A plain collection takes what a collection of buckets refuses: then both must be left alone.
fn refused(text: &str) -> bool {
    text.contains("$unset: {ts") || text.contains("noon")
}

fn all(db: &Db, name: &str) -> Vec<DocBuf> {
    sorted(db.find(name, "{}"))
}

fn sorted(mut docs: Vec<DocBuf>) -> Vec<DocBuf> {
    docs.sort_by_key(|doc| espalier_value::key::of(doc.as_raw().get("_id").unwrap()));
    docs
}

fn show(result: Result<impl std::fmt::Debug, espalier_value::Error>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{}", error.code().0),
    }
}

const PATTERN: &str = "{patterns: [{bucket: {by: [\"s\"], time: \"ts\", every: \"1h\", maxCount: 4, maxBytes: 300, \
                       into: \"b\", stats: {v: [\"min\", \"max\", \"avg\"]}}}]}";
/// The newest readings wait in small buckets.
const LARGER: &str = "{patterns: [{bucket: {by: [\"s\"], time: \"ts\", every: \"4h\", maxCount: 13, into: \"b\", \
                      stats: {v: [\"min\", \"max\", \"avg\"]}}}]}";
const BY_COUNT: &str = "{patterns: [{bucket: {by: [\"s\"], maxCount: 3, into: \"b\"}}]}";

fn run(seed: u64, steps: usize, pattern: &str, indexed: bool) {
    let mut random = Random(seed);
    let db = Db::new();
    db.create("p", pattern).unwrap();
    db.create("q", "{}").unwrap();
    if indexed {
        for name in ["p", "q"] {
            let specs =
                ["{key: {v: 1}, name: \"v_1\"}", "{key: {s: 1, w: -1}, name: \"w\"}", "{key: {ts: -1}, name: \"ts\"}"];
            let specs = specs.map(|spec| espalier_store::IndexSpec::parse(json(spec).as_raw()).unwrap());
            let mut tx = db.begin();
            tx.create_indexes(&ns(name), &specs).unwrap();
            tx.commit().unwrap();
        }
    }
    let timed = pattern.contains("every");
    for step in 0..steps {
        let what = one_step(&db, &mut random, timed);
        assert_eq!(all(&db, "p"), all(&db, "q"), "seed {seed}, step {step}: {what}");
        let report = db.validate("p", false);
        let valid = matches!(report.as_raw().get("valid"), Some(espalier_value::ValueRef::Bool(true)));
        assert!(valid, "seed {seed}, step {step}: {what}: {report:?}");
    }
    // Folded back, the documents are plain ones; declared again, they are readings.
    let before = all(&db, "p");
    db.modify("p", "{}").unwrap();
    assert_eq!(sorted(db.raw("p", "{}")), before);
    assert!(db.begin().collection(&ns("b")).unwrap().is_none());
    db.modify("p", pattern).unwrap();
    assert_eq!(all(&db, "p"), before);
    assert!(db.raw("p", "{}").is_empty());
    db.assert_valid("p");
}

fn one_step(db: &Db, random: &mut Random, timed: bool) -> String {
    match random.below(12) {
        0..=3 => {
            let docs: Vec<DocBuf> = (0..random.below(6) + 1)
                .map(|_| {
                    let id = random.below(30);
                    json(&reading(random, Some(id)))
                })
                .collect();
            let results = ["p", "q"].map(|name| {
                let done = db.insert(name, &docs).unwrap();
                let errors: Vec<(usize, i32)> = done.errors.iter().map(|(at, e)| (*at, e.code().0)).collect();
                (done.inserted, errors)
            });
            assert_eq!(results[0], results[1], "insert {docs:?}");
            format!("insert {docs:?}")
        }
        4 => {
            let (filter, multi) = (filter(random), random.below(3) == 0);
            let filter = if multi { filter } else { format!("{{_id: {}}}", random.below(30)) };
            let results = ["p", "q"].map(|name| show(db.delete(name, &filter, multi)));
            assert_eq!(results[0], results[1], "delete {filter}");
            format!("delete {filter}")
        }
        5..=7 => {
            let filter = filter(random);
            let spec = [
                "{_id: 1}",
                "{ts: 1, _id: 1}",
                "{s: 1, ts: 1, _id: 1}",
                "{s: -1, ts: -1, _id: 1}",
                "{ts: -1, _id: -1}",
                "{v: 1, _id: 1}",
            ][random.below(6) as usize];
            let (skip, limit) = (random.below(4), random.below(9));
            let shown = ["p", "q"].map(|name| {
                let docs = db.find_with(name, &filter, |find| {
                    find.sort = Sort::parse(json(spec).as_raw(), &Scope::default()).unwrap().map(Arc::new);
                    (find.skip, find.limit) = (skip, (limit > 0).then_some(limit));
                });
                docs.unwrap()
            });
            assert_eq!(shown[0], shown[1], "find {filter} sort {spec} skip {skip} limit {limit}");
            let found = ["p", "q"].map(|name| {
                let at = db.begin();
                let parsed = espalier_query::Filter::parse(json(&filter).as_raw(), &Default::default()).unwrap();
                let find = espalier_store::Find::new(Arc::new(parsed), common::context());
                let mut values: Vec<Vec<u8>> = at
                    .distinct(&ns(name), "v", &find)
                    .unwrap()
                    .iter()
                    .map(|value| espalier_value::key::of(value.or_null()))
                    .collect();
                values.sort();
                (at.count(&ns(name), &find).unwrap(), values)
            });
            assert_eq!(found[0], found[1], "count and distinct {filter}");
            format!("find {filter}")
        }
        _ => {
            let (mut filter, text) = (filter(random), update(random));
            if timed && refused(&text) {
                let before = all(db, "p");
                let result = db.update("p", &format!("{{_id: {}}}", random.below(30)), &text);
                assert!(result.is_err() || result.unwrap().matched == 0, "{text}");
                assert_eq!(all(db, "p"), before);
                return text;
            }
            let (multi, upsert) = (random.below(4) == 0 && text.contains('$'), random.below(5) == 0);
            if !multi || text.contains("$inc") || text.contains("$push") || text.contains("$add") {
                filter = format!("{{_id: {}}}", random.below(30));
            }
            // An upsert without a time is refused.
            let upsert = upsert && !multi && (text.contains("ts: date") || !timed);
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
                show(done.map(|done| (done.matched, done.modified, done.upserted_id, done.image)))
            });
            assert_eq!(results[0], results[1], "update {filter} with {text}, multi {multi}, upsert {upsert}");
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
) -> espalier_value::Result<Updated> {
    let mut tx = db.begin_as(Mode::Transaction, false);
    let mut update = common::update_spec(filter, text)?;
    (update.multi, update.upsert, update.want) = (multi, upsert, want);
    let done = tx.update(&ns(name), &update)?;
    // Own writes are visible before the commit.
    if done.matched > 0 && filter.starts_with("{_id: {") {
        assert!(!common::find(&*tx, name, filter, |_| {})?.is_empty(), "{filter}");
    }
    tx.commit()?;
    Ok(done)
}

#[test]
fn is_the_same_as_a_plain_collection() {
    for seed in 0..20 {
        run(seed, 60, PATTERN, false);
    }
}

#[test]
fn is_the_same_with_larger_buckets() {
    for seed in 3000..3012 {
        run(seed, 80, LARGER, false);
    }
}

#[test]
fn is_the_same_with_indexes() {
    for seed in 1000..1015 {
        run(seed, 60, PATTERN, true);
    }
}

#[test]
fn is_the_same_without_windows() {
    for seed in 2000..2010 {
        run(seed, 60, BY_COUNT, false);
    }
}
