//! `$group` on readings, answered from the figures of buckets: the same as a plain collection answers, whatever was
//! written before.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Db, Random, aggregate, json, ns};
use espalier_store::Verbosity;
use espalier_value::{DocBuf, ValueRef, key};

fn number(random: &mut Random) -> String {
    match random.below(14) {
        0 => "null".to_string(),
        1 => "\"broken\"".to_string(),
        2 => format!("decimal({}.25)", random.below(20)),
        3 => format!("long({})", random.below(1000)),
        4 => format!("long({})", i64::MAX - random.below(5) as i64),
        5 => format!("{}", i32::MAX as u64 - random.below(5)),
        6 => format!("-{}", i32::MAX as u64 - random.below(5)),
        7 => format!("[{}, 2]", random.below(5)),
        8 | 9 => format!("{}.{}", random.below(50), random.below(99) + 1),
        _ => random.below(20).to_string(),
    }
}

/// Mostly of one type, so that figures tell something.
fn reading(random: &mut Random, id: u64, kind: u64) -> String {
    let minute = random.below(3 * 1440);
    let sensor = match random.below(40) {
        0 => "s: null, ",
        1 => "",
        2 => "s: 1.0, ",
        3..=20 => "s: 1, ",
        _ => "s: \"b\", ",
    };
    let value = match kind {
        0 => format!("{}.{:02}", random.below(40), random.below(100)),
        1 => random.below(100).to_string(),
        2 => format!("{}", i32::MAX as u64 - random.below(100)),
        3 => format!("long({})", random.below(1 << 40)),
        4 => format!("{}.5e{}", random.below(9) + 1, random.below(30)),
        _ => number(random),
    };
    let value = if random.below(20) == 0 { number(random) } else { value };
    let value = if random.below(20) == 0 { String::new() } else { format!(", v: {value}") };
    format!("{{_id: {id}, {sensor}ts: date({minute}.{}){value}, air: {{t: {}.5}}}}", random.below(9), random.below(9))
}

const KEYS: [&str; 22] = [
    "null",
    "\"all\"",
    "\"$s\"",
    "{s: \"$s\"}",
    "{s: \"$s\", k: 1}",
    "{$dateTrunc: {date: \"$ts\", unit: \"day\"}}",
    "{$dateTrunc: {date: \"$ts\", unit: \"hour\"}}",
    "{$dateTrunc: {date: \"$ts\", unit: \"hour\", binSize: 5}}",
    "{$dateTrunc: {date: \"$ts\", unit: \"minute\", binSize: 20}}",
    "{$dateTrunc: {date: \"$ts\", unit: \"day\", timezone: \"Europe/Berlin\"}}",
    "{$dateTrunc: {date: \"$ts\", unit: \"week\", startOfWeek: \"fri\"}}",
    "{$dateToString: {date: \"$ts\", format: \"%Y-%m-%d\"}}",
    "{$dateToString: {date: \"$ts\", format: \"%H\"}}",
    "{$dateToString: {date: \"$ts\", format: \"%Y-%m-%d\", timezone: \"+05:30\"}}",
    "{y: {$year: \"$ts\"}, m: {$month: \"$ts\"}, d: {$dayOfMonth: \"$ts\"}}",
    "{h: {$hour: \"$ts\"}, s: \"$s\"}",
    "{h: {$hour: {date: \"$ts\", timezone: \"Asia/Kolkata\"}}}",
    "{w: {$isoWeek: \"$ts\"}, d: {$dayOfWeek: \"$ts\"}, s: {$toString: \"$s\"}}",
    "\"$ts\"",
    "\"$v\"",
    "{$cond: [{$gt: [\"$v\", 10]}, \"warm\", \"cold\"]}",
    "{$ifNull: [\"$s\", \"none\"]}",
];

const MATCHES: [&str; 12] = [
    "{}",
    "{s: 1}",
    "{s: {$in: [1, \"b\", null]}}",
    "{s: {$exists: true}}",
    "{s: {$type: \"string\"}}",
    "{ts: {$gte: date(A), $lt: date(B)}}",
    "{s: 1, ts: {$gt: date(A)}}",
    "{$or: [{ts: {$lt: date(A)}}, {ts: {$gte: date(B)}}]}",
    "{$nor: [{ts: {$lte: date(A)}}]}",
    "{v: {$gt: 10}}",
    "{s: {$not: {$in: [\"b\"]}}, ts: {$not: {$gte: date(B)}}}",
    "{$expr: {$gt: [\"$ts\", date(A)]}}",
];

const FIELDS: &str = "n: {$count: {}}, one: {$sum: 1}, third: {$sum: 0.1}, sum: {$sum: \"$v\"}, avg: {$avg: \"$v\"}, \
                      min: {$min: \"$v\"}, max: {$max: \"$v\"}, air: {$avg: \"$air.t\"}, s: {$max: \"$s\"}";

/// By key; of equal values of different types, which one is shown depends on the order of the documents. Of a double or
/// a decimal the last digits do, so they stand apart.
fn comparable(docs: Vec<DocBuf>) -> Vec<(String, Vec<f64>)> {
    let mut shown: Vec<(String, Vec<f64>)> = docs
        .iter()
        .map(|doc| {
            let mut numbers = Vec::new();
            let fields = doc.as_raw().iter().map(|elem| match (elem.name(), elem.value()) {
                (name @ ("_id" | "min" | "max" | "s"), value) => format!("{name}: {:?}", key::of(value)),
                (name, ValueRef::Double(x)) => {
                    numbers.push(x);
                    format!("{name}: double")
                }
                (name, ValueRef::Decimal(x)) => {
                    numbers.push(x.to_string().parse().unwrap());
                    format!("{name}: decimal")
                }
                (name, value) => format!("{name}: {} {value}", elem.ty().name()),
            });
            (fields.collect::<Vec<_>>().join(", "), numbers)
        })
        .collect();
    shown.sort_by(|a, b| a.0.cmp(&b.0));
    shown
}

fn same(p: &[(String, Vec<f64>)], q: &[(String, Vec<f64>)]) -> bool {
    let close =
        |a: &f64, b: &f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12 * a.abs().max(b.abs()) + 1e-6;
    p.len() == q.len() && p.iter().zip(q).all(|(p, q)| p.0 == q.0 && p.1.iter().zip(&q.1).all(|(a, b)| close(a, b)))
}

fn compare(db: &Db, random: &mut Random, what: &str) {
    let a = random.below(3 * 24) * 60 + if random.below(2) == 0 { 0 } else { random.below(60) };
    let b = a + random.below(2000);
    for id in KEYS {
        let filter = MATCHES[random.below(MATCHES.len() as u64) as usize];
        let filter = filter.replace('A', &a.to_string()).replace('B', &b.to_string());
        let stages = format!("[{{$match: {filter}}}, {{$group: {{_id: {id}, {FIELDS}}}}}]");
        let [p, q] = ["p", "q"].map(|name| match aggregate(&*db.begin(), name, &stages) {
            Ok(docs) => comparable(docs),
            Err(error) => vec![(error.to_string(), Vec::new())],
        });
        let differing: Vec<_> = p.iter().zip(&q).filter(|(p, q)| !same(&[(*p).clone()], &[(*q).clone()])).collect();
        assert!(same(&p, &q), "{what}: {stages}: {differing:?}");
        let count = format!("[{{$match: {filter}}}, {{$count: \"n\"}}]");
        let [p, q] = ["p", "q"].map(|name| aggregate(&*db.begin(), name, &count).unwrap());
        assert_eq!(p, q, "{what}: {count}");
    }
}

fn run(seed: u64, every: &str) {
    let mut random = Random(seed);
    let db = Db::new();
    let pattern = format!(
        "{{patterns: [{{bucket: {{by: [\"s\"], time: \"ts\", every: \"{every}\", maxCount: 20, into: \"b\", \
         stats: {{v: [\"min\", \"max\", \"avg\"], \"air.t\": [\"avg\"]}}}}}}]}}"
    );
    db.create("p", &pattern).unwrap();
    db.create("q", "{}").unwrap();
    let kind = (seed * 5 + seed / 2) % 6;
    let mut next = 0;
    for round in 0..4 {
        let docs: Vec<DocBuf> = (0..60)
            .map(|_| {
                next += 1;
                json(&reading(&mut random, next, kind))
            })
            .collect();
        for name in ["p", "q"] {
            assert!(db.insert(name, &docs).unwrap().errors.is_empty());
        }
        for _ in 0..10 {
            let id = random.below(next) + 1;
            let text = match random.below(4) {
                0 => format!("{{$set: {{v: {}}}}}", number(&mut random)),
                1 => format!("{{$set: {{ts: date({})}}}}", random.below(3 * 1440)),
                2 => "{$unset: {v: 1}}".to_string(),
                _ => "{$set: {s: 2}}".to_string(),
            };
            for name in ["p", "q"] {
                if text.contains("s: 2") && id.is_multiple_of(3) {
                    db.delete(name, &format!("{{_id: {id}}}"), false).unwrap();
                } else {
                    db.update(name, &format!("{{_id: {id}}}"), &text).unwrap();
                }
            }
        }
        compare(&db, &mut random, &format!("seed {seed}, round {round}, every {every}"));
    }
    db.assert_valid("p");
}

#[test]
fn groups_are_the_same_as_on_a_plain_collection() {
    for seed in 0..12 {
        run(seed, ["1h", "1d", "7h", "30m", "1w", "1mo"][seed as usize / 2]);
    }
}

fn explain(db: &Db, stages: &str) -> DocBuf {
    let at = db.begin();
    let (_, find) = common::aggregate_in(&*at, "p", stages, common::context()).unwrap();
    let plan = at.explain(&ns("p"), &find, Verbosity::ExecutionStats).unwrap();
    DocBuf::from_raw(plan.as_raw().get_doc("patterns").unwrap().get_doc("bucket").unwrap())
}

fn whole(doc: &DocBuf, name: &str) -> i64 {
    doc.as_raw().get(name).and_then(espalier_value::number::Number::of).unwrap().to_i64_clamped()
}

#[test]
fn whole_buckets_come_from_stats_and_edges_from_readings() {
    let db = Db::new();
    let pattern = "{patterns: [{bucket: {by: [\"s\"], time: \"ts\", every: \"1h\", into: \"b\", \
                   stats: {v: [\"avg\"]}}}]}";
    db.create("p", pattern).unwrap();
    let docs: Vec<DocBuf> = (0..1440).map(|n| json(&format!("{{_id: {n}, s: 1, ts: date({n}), v: {n}.25}}"))).collect();
    docs.chunks(720).for_each(|half| assert_eq!(db.insert("p", half).unwrap().inserted, 720));
    let daily = "{$group: {_id: {$dateTrunc: {date: \"$ts\", unit: \"day\"}}, avg: {$avg: \"$v\"}}}";
    let all = explain(&db, &format!("[{daily}]"));
    assert_eq!(all.as_raw().get_str("groupFrom"), Some("stats"));
    assert_eq!((whole(&all, "wholeBuckets"), whole(&all, "edgeBuckets"), whole(&all, "readingsRead")), (24, 0, 0));
    // Half past three to half past five: an hour from its figures, two halves from their readings.
    let cut = "{$match: {s: 1, ts: {$gte: date(210), $lt: date(330)}}}";
    let some = explain(&db, &format!("[{cut}, {daily}]"));
    assert_eq!((whole(&some, "wholeBuckets"), whole(&some, "edgeBuckets"), whole(&some, "readingsRead")), (1, 2, 60));
    assert_eq!(whole(&some, "bucketsRead"), 3);
    let got = aggregate(&*db.begin(), "p", &format!("[{cut}, {daily}]")).unwrap();
    assert!(matches!(got[0].as_raw().get("avg"), Some(ValueRef::Double(avg)) if avg == 269.75), "{got:?}");
    // A maximum is not among the figures, so readings are read.
    let most = explain(&db, "[{$group: {_id: null, max: {$max: \"$v\"}}}]");
    assert_eq!(most.as_raw().get_str("groupFrom"), Some("readings"));
}

#[test]
fn under_a_collation_texts_are_compared_by_it() {
    let db = Db::new();
    let pattern = "{patterns: [{bucket: {by: [\"s\"], into: \"b\", maxCount: 2, stats: {v: [\"min\", \"max\"]}}}]}";
    db.create("p", pattern).unwrap();
    let docs = ["{_id: 1, s: 1, v: \"b\"}", "{_id: 2, s: 1, v: \"C\"}", "{_id: 3, s: 1, v: 5}", "{_id: 4, s: 1, v: 6}"];
    db.insert("p", &docs.map(json)).unwrap();
    let collation = espalier_value::Collation::parse(json("{locale: \"en\", strength: 2}").as_raw(), "").unwrap();
    let at = db.begin();
    let stages = "[{$group: {_id: null, max: {$max: \"$v\"}, min: {$min: \"$v\"}}}]";
    let (docs, _) =
        common::aggregate_in(&*at, "p", stages, Arc::new(common::context().with_collation(collation))).unwrap();
    assert_eq!(docs[0].as_raw().get_str("max"), Some("C"));
    assert!(matches!(docs[0].as_raw().get("min"), Some(ValueRef::Int32(5))));
}
