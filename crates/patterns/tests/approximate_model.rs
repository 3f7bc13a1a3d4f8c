//! Random operations on a collection with the approximate pattern and on a plain one: the same replies, the same documents,
//! and the invariant after every step.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Db, Random, context, json, ns, projection, update_spec};
use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_store::{Find, IndexSpec, Mode, Store, Want};
use espalier_value::{DocBuf, RawDoc, ValueRef};

/// Without the stamp, at whatever depth.
fn bare(doc: RawDoc<'_>) -> DocBuf {
    let mut out = DocBuf::new();
    for elem in doc {
        match elem.value() {
            ValueRef::Document(inner) => out.append(elem.name(), &bare(inner)),
            _ if elem.name() == "at" => &mut out,
            _ => out.append_elem(elem),
        };
    }
    out
}

fn number(random: &mut Random) -> String {
    match random.below(9) {
        0 => "2147483647".to_string(),
        1 => "long(9223372036854775000)".to_string(),
        2 => "0.5".to_string(),
        3 => "decimal(0.1)".to_string(),
        4 => format!("long({})", random.below(9)),
        _ => format!("{}", random.below(9) as i64 - 2),
    }
}

fn value(random: &mut Random) -> String {
    match random.below(9) {
        0 => "\"text\"".to_string(),
        1 => "null".to_string(),
        2 => "[1, 2]".to_string(),
        _ => number(random),
    }
}

fn document(random: &mut Random, id: u64) -> String {
    let mut fields = vec![format!("_id: {id}"), format!("t: {}", random.below(5))];
    match random.below(7) {
        0 => {}
        1 => fields.push("m: {}".to_string()),
        2 => fields.push(format!("m: {}", value(random))),
        3 => fields.push(format!("m: {{o: 1, n: {}, p: 2}}", value(random))),
        _ => fields.push(format!("m: {{n: {}}}", random.below(9))),
    }
    if random.below(3) > 0 {
        fields.push(format!("k: {}", number(random)));
    }
    format!("{{{}}}", fields.join(", "))
}

fn filter(random: &mut Random) -> String {
    let n = random.below(9);
    match random.below(12) {
        0 => "{}".to_string(),
        1 => format!("{{k: {n}}}"),
        2 => format!("{{k: {{$gt: {n}}}}}"),
        3 => format!("{{\"m.n\": {{$lte: {n}}}, t: {{$lt: 4}}}}"),
        4 => format!("{{$or: [{{k: {n}}}, {{t: {n}}}]}}"),
        5 => "{\"m.n\": {$exists: false}}".to_string(),
        6 => format!("{{$expr: {{$gt: [\"$k\", \"$t\"]}}, t: {}}}", random.below(5)),
        7 => format!("{{t: {}}}", random.below(5)),
        _ => format!("{{_id: {}}}", random.below(5)),
    }
}

fn update(random: &mut Random) -> String {
    let n = number(random);
    match random.below(24) {
        0..=7 => format!("{{$inc: {{k: {n}}}}}"),
        8..=11 => format!("{{$inc: {{\"m.n\": {n}}}}}"),
        12 => format!("{{$inc: {{k: {n}, \"m.n\": 1}}}}"),
        13 => format!("{{$inc: {{k: {n}, t: 1}}}}"),
        14 => format!("{{$inc: {{k: {n}}}, $set: {{s: \"x\"}}}}"),
        15 => format!("{{$set: {{t: {}}}}}", random.below(5)),
        16 => format!("{{$set: {{k: {}}}}}", value(random)),
        17 => format!("{{$set: {{m: {{n: {n}}}}}}}"),
        18 => "{$unset: {k: 1}}".to_string(),
        19 => "{$rename: {k: \"kept\"}}".to_string(),
        20 => "{$mul: {\"m.n\": 2}}".to_string(),
        21 => "[{$set: {twice: {$add: [{$ifNull: [\"$k\", 0]}, 1]}}}]".to_string(),
        22 => format!("{{$set: {{z{}: 1}}}}", random.below(3)),
        _ => format!("{{t: {}, k: {n}}}", random.below(5)),
    }
}

fn show<T: std::fmt::Debug>(result: espalier_value::Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{}", error.code().0),
    }
}

fn one_step(db: &Db, random: &mut Random) -> String {
    match random.below(12) {
        0 | 1 => {
            let id = random.below(5);
            let doc = document(random, id);
            let results = ["p", "q"].map(|name| {
                let done = db.insert(name, &[json(&doc)]).unwrap();
                (done.inserted, done.errors.first().map(|(at, error)| (*at, error.code().0)))
            });
            assert_eq!(results[0], results[1], "insert {doc}");
            format!("insert {doc}")
        }
        2 => {
            let multi = random.below(3) == 0;
            let filter = if multi { filter(random) } else { format!("{{_id: {}}}", random.below(5)) };
            let results = ["p", "q"].map(|name| show(db.delete(name, &filter, multi)));
            assert_eq!(results[0], results[1], "delete {filter}");
            format!("delete {filter}")
        }
        3 | 4 => read(db, random),
        5 => {
            if random.below(2) == 0 {
                db.store.run_pattern(&ns("p"), &context()).unwrap().unwrap();
            }
            "run".to_string()
        }
        _ => write(db, random),
    }
}

fn read(db: &Db, random: &mut Random) -> String {
    let (filter, order, shape) = (filter(random), random.below(4), random.below(4));
    let (skip, limit) = (random.below(3), random.below(6));
    let shown = ["p", "q"].map(|name| {
        let docs = db.find_with(name, &filter, |find| {
            let order = ["{k: -1, _id: 1}", "{\"m.n\": 1, _id: -1}", "{t: 1, _id: 1}", "{_id: 1}"][order as usize];
            find.sort = Sort::parse(json(order).as_raw(), &Scope::default()).unwrap().map(Arc::new);
            find.skip = skip;
            find.limit = (limit > 0).then_some(limit);
            let text = ["", "{k: 1}", "{k: 0, at: 0}", "{\"m.n\": 1, t: 1}"][shape as usize];
            find.projection = if text.is_empty() { None } else { projection(text, &filter) };
        });
        docs.unwrap().iter().map(|doc| bare(doc.as_raw())).collect::<Vec<_>>()
    });
    assert_eq!(shown[0], shown[1], "find {filter}, order {order}, shape {shape}, {skip} {limit}");
    let rest = ["p", "q"].map(|name| {
        let parsed = Filter::parse(json(&filter).as_raw(), &Scope::default()).unwrap();
        let (at, find) = (db.begin(), Find::new(Arc::new(parsed), context()));
        let mut distinct: Vec<String> =
            at.distinct(&ns(name), "k", &find).unwrap().iter().map(|value| value.or_null().to_string()).collect();
        distinct.sort();
        (at.count(&ns(name), &find).unwrap(), distinct.len())
    });
    assert_eq!(rest[0], rest[1], "count and distinct {filter}");
    format!("find {filter}")
}

fn write(db: &Db, random: &mut Random) -> String {
    let (mut chosen, text) = (filter(random), update(random));
    let (multi, upsert) = (random.below(4) == 0 && !text.starts_with("{t:"), random.below(6) == 0);
    if !multi {
        chosen = format!("{{_id: {}}}", random.below(5));
    }
    let want = [Want::Nothing, Want::Before, Want::After][if multi { 0 } else { random.below(3) as usize }];
    let transaction = random.below(4) == 0;
    let results = ["p", "q"].map(|name| {
        let set = |update: &mut espalier_store::Update| {
            (update.multi, update.upsert, update.want) = (multi, upsert, want);
        };
        let done = match transaction {
            false => db.update_with(name, &chosen, &text, set),
            true => (|| {
                let mut tx = db.begin_as(Mode::Transaction, false);
                let mut update = update_spec(&chosen, &text)?;
                set(&mut update);
                let done = tx.update(&ns(name), &update)?;
                common::find(&*tx, name, &chosen, |_| {})?;
                tx.commit()?;
                Ok(done)
            })(),
        };
        show(done.map(|done| {
            let image = done.image.map(|image| bare(image.as_raw()));
            (done.matched, done.modified, done.upserted_id, image)
        }))
    });
    assert_eq!(results[0], results[1], "update {chosen} with {text}, multi {multi}, upsert {upsert}");
    if multi && !results[0].starts_with('(') {
        // Which documents were updated before the one that could not be is not defined.
        for name in ["p", "q"] {
            db.delete(name, "{}", true).unwrap();
        }
    }
    format!("update {chosen} with {text}, multi {multi}, upsert {upsert}")
}

fn run(seed: u64, steps: usize, indexed: bool) {
    let mut random = Random(seed);
    let db = Db::new();
    let count = 2 + random.below(6);
    let pattern = format!(
        "{{patterns: [{{approximate: {{fields: [\"k\", \"m.n\"], flush: {{count: {count}, within: \"1h\"}}, stamp: \"at\"}}}}]}}"
    );
    db.create("p", &pattern).unwrap();
    db.create("q", "{}").unwrap();
    if indexed {
        for name in ["p", "q"] {
            let mut tx = db.begin();
            for spec in ["{key: {k: 1}, name: \"k\"}", "{key: {t: 1, \"m.n\": -1}, name: \"tn\"}"] {
                let spec = IndexSpec::parse(json(spec).as_raw()).unwrap();
                tx.create_indexes(&ns(name), &[spec]).unwrap();
            }
            tx.commit().unwrap();
        }
    }
    for step in 0..steps {
        let what = one_step(&db, &mut random);
        let all = |name| db.find(name, "{}").iter().map(|doc| bare(doc.as_raw())).collect::<Vec<_>>();
        assert_eq!(all("p"), all("q"), "seed {seed}, step {step}: {what}");
        let report = db.validate("p", false);
        let valid = matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(true)));
        assert!(valid, "seed {seed}, step {step}: {what}: {report:?}");
    }
}

#[test]
fn is_the_same_as_a_plain_collection() {
    for seed in 0..30 {
        run(seed, 80, false);
    }
}

#[test]
fn is_the_same_with_indexes_on_the_counters() {
    for seed in 1000..1020 {
        run(seed, 80, true);
    }
}
