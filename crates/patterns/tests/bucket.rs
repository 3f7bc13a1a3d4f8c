//! The bucket pattern, case by case: what the hand-written versions get wrong.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Db, json, ns};
use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_store::{Find, IndexSpec, Insert, Mode, Verbosity};
use espalier_value::{DocBuf, RawDoc, ValueRef};

const SENSORS: &str = "{patterns: [{bucket: {by: [\"sensorId\"], time: \"ts\", every: \"1h\", into: \"sensorBuckets\", \
                       maxCount: 400, stats: {temp: [\"min\", \"max\", \"avg\"]}, key: [\"ts\"]}}]}";

fn sensors() -> Db {
    let db = Db::new();
    db.create("readings", SENSORS).unwrap();
    db
}

fn put(db: &Db, text: &str) {
    let done = db.insert("readings", &[json(text)]).unwrap();
    assert!(done.errors.is_empty(), "{:?}", done.errors);
}

fn figure<'a>(bucket: &'a DocBuf, name: &str) -> ValueRef<'a> {
    bucket.as_raw().get_doc("stats").unwrap().get(name).unwrap()
}

fn shown(value: ValueRef<'_>) -> String {
    value.to_string()
}

#[test]
fn what_is_stored_has_the_shape_of_the_seeds() {
    let db = sensors();
    put(&db, "{_id: 1, sensorId: \"S\", ts: date(600), temp: 22.5}");
    put(&db, "{_id: 2, sensorId: \"S\", ts: date(601), temp: 22.7}");
    let buckets = db.raw("sensorBuckets", "{}");
    assert_eq!(buckets.len(), 1);
    let names: Vec<&str> = buckets[0].as_raw().iter().map(|elem| elem.name()).collect();
    assert_eq!(names, ["_id", "sensorId", "bucketDate", "bucketEndDate", "measurements", "stats"]);
    let item = common::json("{_id: 1, ts: date(600), temp: 22.5}");
    let Some(ValueRef::Array(items)) = buckets[0].as_raw().get("measurements") else { panic!() };
    assert_eq!(items.get(0).unwrap().as_doc().unwrap().as_bytes(), item.as_bytes());
    assert!(matches!(buckets[0].as_raw().get("bucketEndDate"), Some(ValueRef::DateTime(ms)) if ms == 660 * 60_000));
    assert!(db.raw("readings", "{}").is_empty(), "nothing is stored under the logical name");
    db.assert_valid("readings");
}

/// A8: the daily mean of two hours with 360 readings of 20 and one of 40 is not 30.
#[test]
fn a8_sums_and_counts_are_kept_so_that_means_can_be_weighted() {
    let db = sensors();
    let docs: Vec<DocBuf> = (0..360)
        .map(|n| json(&format!("{{_id: {n}, sensorId: 1, ts: date({}.{:03}), temp: 20}}", n / 6, n % 6 * 160)))
        .collect();
    assert_eq!(db.insert("readings", &docs).unwrap().inserted, 360);
    put(&db, "{_id: 999, sensorId: 1, ts: date(60), temp: 40}");
    let buckets = db.raw("sensorBuckets", "{}");
    assert_eq!(buckets.len(), 2);
    let total = |name: &str| -> f64 { buckets.iter().map(|b| shown(figure(b, name)).parse::<f64>().unwrap()).sum() };
    assert_eq!(total("tempSum") / total("tempCount"), 7240.0 / 361.0);
}

/// A9: half past ten to half past eleven is half of two buckets, no more and no less.
#[test]
fn a9_a_range_that_cuts_two_buckets_gets_its_halves() {
    let db = sensors();
    for n in 0..24 {
        put(&db, &format!("{{_id: {n}, sensorId: 1, ts: date({}), temp: {n}}}", 600 + n * 5));
    }
    let found = db.find("readings", "{sensorId: 1, ts: {$gte: date(630), $lt: date(690)}}");
    let ids: Vec<String> = found.iter().map(|doc| shown(doc.as_raw().get("_id").unwrap())).collect();
    assert_eq!(ids, (6..18).map(|n| n.to_string()).collect::<Vec<_>>());
}

/// A10: a device that sends again after a timeout does not inflate anything.
#[test]
fn a10_a_device_that_sends_twice_is_refused_the_second_time() {
    let db = sensors();
    put(&db, "{_id: 1, sensorId: 1, ts: date(5), temp: 20}");
    let again = db.insert("readings", &[json("{_id: 2, sensorId: 1, ts: date(5), temp: 20}")]).unwrap();
    assert_eq!(again.errors[0].1.code().0, 11000);
    let both = [json("{_id: 3, sensorId: 1, ts: date(6)}"), json("{_id: 4, sensorId: 1, ts: date(6)}")];
    let again = db.insert("readings", &both).unwrap();
    assert_eq!((again.inserted, again.errors[0].1.code().0), (1, 11000));
    // Another sensor may send at the same time, and a reading may not move onto another.
    put(&db, "{_id: 5, sensorId: 2, ts: date(5), temp: 20}");
    let moved = db.update("readings", "{_id: 5}", "{$set: {sensorId: 1}}").unwrap_err();
    assert_eq!(moved.code().0, 11000);
    db.update("readings", "{_id: 1}", "{$set: {ts: date(5), temp: 21}}").unwrap();
    let buckets = db.raw("sensorBuckets", "{sensorId: 1}");
    assert_eq!((shown(figure(&buckets[0], "count")), shown(figure(&buckets[0], "tempSum"))), ("2".into(), "21".into()));
    db.assert_valid("readings");
}

/// A10: many writers of one window make one bucket of it.
#[test]
fn a10_writers_at_the_same_time_share_one_bucket() {
    let db = sensors();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..20 {
                    let id = writer * 100 + n;
                    put(db, &format!("{{_id: {id}, sensorId: 1, ts: date(1.{id:04}), temp: 1}}"));
                }
            });
        }
    });
    // The newest may wait in a small one behind it.
    let buckets = db.raw("sensorBuckets", "{}");
    assert!(buckets.len() <= 2, "{}", buckets.len());
    let total: i64 = buckets.iter().map(|bucket| shown(figure(bucket, "tempSum")).parse::<i64>().unwrap()).sum();
    assert_eq!(total, 160);
    db.assert_valid("readings");
}

/// A10: a sensor that is too fast for one document gets several.
#[test]
fn a10_a_bucket_is_split_by_count_and_by_size() {
    let db = sensors();
    let docs: Vec<DocBuf> =
        (0..1000).map(|n| json(&format!("{{_id: {n}, sensorId: 1, ts: date(1.{n:04}), temp: 1}}"))).collect();
    assert_eq!(db.insert("readings", &docs).unwrap().inserted, 1000);
    let sizes: Vec<String> = db.raw("sensorBuckets", "{}").iter().map(|b| shown(figure(b, "count"))).collect();
    assert_eq!(sizes, ["400", "400", "200"]);
    db.create("large", "{patterns: [{bucket: {maxBytes: 100, into: \"largeBuckets\"}}]}").unwrap();
    let text = "x".repeat(60);
    for n in 0..4 {
        db.insert("large", &[json(&format!("{{_id: {n}, text: \"{text}\"}}"))]).unwrap();
    }
    assert_eq!(db.raw("largeBuckets", "{}").len(), 4);
    db.assert_valid("large");
}

/// C4: a month is a window with bounds, in UTC, not a text; and its average follows every write.
#[test]
fn c4_monthly_buckets_have_bounds_and_a_living_average() {
    let db = Db::new();
    let pattern = "{patterns: [{bucket: {by: [\"productId\"], time: \"createdAt\", every: \"1mo\", items: \"reviews\", \
                   into: \"reviewBuckets\", stats: {rating: [\"avg\"]}}}]}";
    db.create("readings", pattern).unwrap();
    // 31 January 23:59 and 1 February 00:00, 1970.
    put(&db, "{_id: 1, productId: 7, createdAt: date(44639), rating: 5}");
    put(&db, "{_id: 2, productId: 7, createdAt: date(44640), rating: 4}");
    put(&db, "{_id: 3, productId: 7, createdAt: date(44641), rating: 1}");
    let averages = |db: &Db| -> Vec<String> {
        db.raw("reviewBuckets", "{}").iter().map(|b| shown(figure(b, "ratingAvg"))).collect()
    };
    assert_eq!(
        averages(&db),
        ["5.0", "2.5"].map(|s| json(&format!("{{x: {s}}}")).as_raw().get("x").unwrap().to_string())
    );
    db.update("readings", "{_id: 3}", "{$set: {rating: 2}}").unwrap();
    db.delete("readings", "{_id: 1}", false).unwrap();
    assert_eq!(averages(&db), [shown(ValueRef::Double(3.0))]);
    db.assert_valid("readings");
}

#[test]
fn a_reading_comes_back_exactly_as_it_was_inserted() {
    let db = sensors();
    let texts = [
        "{_id: 1, sensorId: 5, ts: date(1), temp: 1}",
        "{_id: 2, ts: date(2), temp: 1, sensorId: 5}",
        "{_id: 3, sensorId: long(5), ts: date(3)}",
        "{_id: 4, sensorId: 5.0, ts: date(4)}",
        "{_id: 5, sensorId: decimal(5.00), ts: date(5)}",
        "{_id: 6, ts: date(6)}",
        "{_id: 7, sensorId: null, ts: date(7)}",
    ];
    for text in texts {
        put(&db, text);
    }
    for (n, text) in texts.iter().enumerate() {
        let found = db.find("readings", &format!("{{_id: {}}}", n + 1));
        assert_eq!(found[0].as_bytes(), json(text).as_bytes(), "{text}");
    }
    assert_eq!(db.raw("sensorBuckets", "{}").len(), 2);
    db.assert_valid("readings");
}

#[test]
fn what_cannot_be_a_reading_is_refused_by_name() {
    let db = sensors();
    for text in ["{_id: 1, sensorId: 1}", "{_id: 1, ts: 5}", "{_id: 1, ts: \"noon\"}", "{_id: 1, ts: [date(1)]}"] {
        let done = db.insert("readings", &[json(text)]).unwrap();
        assert!(done.errors[0].1.message().contains("'ts' must be present"), "{}", done.errors[0].1.message());
    }
    let done = db.insert("readings", &[json("{_id: 1, ts: date(1), sensorId: [1]}")]).unwrap();
    assert!(done.errors[0].1.message().contains("'sensorId' must not be an array"));
    put(&db, "{_id: 1, sensorId: 1, ts: date(1)}");
    assert!(db.update("readings", "{_id: 1}", "{$unset: {ts: 1}}").unwrap_err().message().contains("'ts'"));
    let unique = IndexSpec::parse(json("{key: {temp: 1}, name: \"t\", unique: true}").as_raw()).unwrap();
    let error = db.begin().create_indexes(&ns("readings"), &[unique]).unwrap_err();
    assert!(error.message().contains("'key'"), "{}", error.message());
    let done = db.insert("sensorBuckets", &[json("{_id: 1}")]);
    assert!(done.unwrap_err().message().contains("'bucket'"));
}

#[test]
fn a_declaration_is_refused_whole_with_the_path_of_what_is_wrong() {
    let db = Db::new();
    for (options, path) in [
        ("by: 1", "patterns.0.bucket.by"),
        ("by: [1]", "patterns.0.bucket.by.0"),
        ("by: [\"a\", \"a.b\"]", "patterns.0.bucket.by.1"),
        ("time: \"ts\"", "patterns.0.bucket.every"),
        ("every: \"1h\"", "patterns.0.bucket.time"),
        ("time: \"ts\", every: \"soon\"", "patterns.0.bucket.every"),
        ("time: \"ts\", every: \"1h\", by: [\"ts\"]", "patterns.0.bucket.by"),
        ("start: \"from\"", "patterns.0.bucket.start"),
        ("stats: {v: [\"median\"]}", "patterns.0.bucket.stats.v.0"),
        ("stats: {v: \"min\"}", "patterns.0.bucket.stats.v"),
        ("stats: {v: []}", "patterns.0.bucket.stats.v"),
        ("by: [\"v\"], stats: {v: [\"min\"]}", "patterns.0.bucket.stats.v"),
        ("by: [\"v\"], key: [\"v\"]", "patterns.0.bucket.key"),
        ("by: [\"items\"]", "patterns.0.bucket.by"),
        ("items: \"stats\"", "patterns.0.bucket.items"),
        ("into: \"c\"", "patterns.0.bucket.into"),
        ("maxCount: 0", "patterns.0.bucket.maxCount"),
        ("size: 1", "patterns.0.bucket.size"),
    ] {
        let error = db.create("c", &format!("{{patterns: [{{bucket: {{{options}}}}}]}}")).unwrap_err();
        assert!(error.message().starts_with(&format!("{path}:")), "{options}: {}", error.message());
        assert!(db.begin().collection(&ns("c")).unwrap().is_none());
    }
}

fn explained(db: &Db, filter: &str, sort: &str) -> DocBuf {
    let filter = Filter::parse(json(filter).as_raw(), &Scope::default()).unwrap();
    let mut find = Find::new(Arc::new(filter), common::context());
    find.sort = Sort::parse(json(sort).as_raw(), &Scope::default()).unwrap().map(Arc::new);
    let report = db.begin().explain(&ns("readings"), &find, Verbosity::ExecutionStats).unwrap();
    let about = report.as_raw().get_doc("patterns").and_then(|doc| doc.get_doc("bucket")).unwrap();
    DocBuf::from_raw(about)
}

#[test]
fn only_the_buckets_that_can_match_are_read() {
    let db = sensors();
    let mut docs = Vec::new();
    for sensor in 0..10 {
        for hour in 0..24 {
            let id = sensor * 24 + hour;
            docs.push(json(&format!("{{_id: {id}, sensorId: {sensor}, ts: date({}), temp: {hour}}}", hour * 60 + 7)));
        }
    }
    assert_eq!(db.insert("readings", &docs).unwrap().inserted, 240);
    let read = |filter: &str, sort: &str| {
        let about = explained(&db, filter, sort);
        let number = |name| shown(about.as_raw().get(name).unwrap()).parse::<i64>().unwrap();
        (number("bucketsRead"), number("nReturned"))
    };
    assert_eq!(read("{sensorId: 3}", "{}"), (24, 24));
    assert_eq!(read("{sensorId: 3, ts: {$gte: date(120), $lt: date(240)}}", "{}"), (2, 2));
    assert_eq!(read("{sensorId: {$in: [3, 4]}, ts: {$gte: date(120), $lt: date(240)}}", "{}"), (4, 4));
    assert_eq!(read("{sensorId: 3, ts: date(127)}", "{}"), (1, 1));
    assert_eq!(read("{_id: 100}", "{}"), (1, 1));
    let sorted = explained(&db, "{sensorId: 3}", "{ts: -1}");
    assert_eq!(sorted.as_raw().get_str("sort"), Some("one window after the other"));
    // The newest reading of a sensor is found without reading all its buckets.
    let at = db.begin();
    let mut find = Find::new(
        Arc::new(Filter::parse(json("{sensorId: 3}").as_raw(), &Scope::default()).unwrap()),
        common::context(),
    );
    find.sort = Sort::parse(json("{ts: -1}").as_raw(), &Scope::default()).unwrap().map(Arc::new);
    find.limit = Some(1);
    let mut cursor = at.find(&ns("readings"), &find).unwrap();
    assert!(cursor.advance().unwrap());
    assert_eq!(shown(cursor.doc().get("temp").unwrap()), "23");
    assert!(cursor.docs_examined() <= 2, "{}", cursor.docs_examined());
}

#[test]
fn a_validator_sees_readings() {
    let db = sensors();
    let mut options = db.begin().collection(&ns("readings")).unwrap().unwrap().options;
    options.validator = Some(json("{temp: {$lt: 100}}"));
    let mut tx = db.begin();
    tx.set_options(&ns("readings"), &options).unwrap();
    tx.commit().unwrap();
    put(&db, "{_id: 1, sensorId: 1, ts: date(1), temp: 20}");
    let done = db.insert("readings", &[json("{_id: 2, sensorId: 1, ts: date(2), temp: 500}")]).unwrap();
    assert_eq!(done.errors[0].1.code().0, 121);
    assert_eq!(db.update("readings", "{_id: 1}", "{$set: {temp: 500}}").unwrap_err().code().0, 121);
}

#[test]
fn an_unordered_insert_keeps_what_can_be_kept() {
    let db = sensors();
    let docs = ["{_id: 1, ts: date(1)}", "{_id: 1, ts: date(2)}", "{_id: 2, ts: 5}", "{_id: 2, ts: date(3)}"].map(json);
    let docs: Vec<RawDoc<'_>> = docs.iter().map(DocBuf::as_raw).collect();
    let how = Insert { ordered: false, bypass_validation: false, statements: None, context: common::context() };
    let mut tx = db.begin();
    let done = tx.insert(&ns("readings"), &docs, &how).unwrap();
    tx.commit().unwrap();
    let failed: Vec<(usize, i32)> = done.errors.iter().map(|(at, error)| (*at, error.code().0)).collect();
    assert_eq!((done.inserted, failed), (2, vec![(1, 11000), (2, 2)]));
    assert_eq!(db.find("readings", "{}").len(), 2);
}

#[test]
fn a_transaction_sees_its_own_readings_and_leaves_none_behind_when_aborted() {
    let db = sensors();
    put(&db, "{_id: 1, sensorId: 1, ts: date(1), temp: 20}");
    let mut tx = db.begin_as(Mode::Transaction, false);
    common::insert(&mut *tx, "readings", &[json("{_id: 2, sensorId: 1, ts: date(2), temp: 30}")]).unwrap();
    tx.delete(&ns("readings"), &common::delete_spec("{_id: 1}", false).unwrap()).unwrap();
    assert_eq!(common::find(&*tx, "readings", "{}", |_| {}).unwrap().len(), 1);
    tx.abort();
    let found = db.find("readings", "{}");
    assert_eq!(found.len(), 1);
    assert_eq!(shown(found[0].as_raw().get("_id").unwrap()), "1");
    db.assert_valid("readings");
}

#[test]
fn validate_finds_what_is_wrong_and_repair_mends_it() {
    let db = sensors();
    for n in 0..6 {
        put(&db, &format!("{{_id: {n}, sensorId: 1, ts: date({}), temp: {n}}}", n * 20));
    }
    let expected = db.find("readings", "{}");
    let raw = |filter: &str, update: &str| {
        let mut tx = db.begin_as(Mode::Auto, true);
        let done = tx.update(&ns("sensorBuckets"), &common::update_spec(filter, update).unwrap()).unwrap();
        assert_eq!(done.modified, 1);
        tx.commit().unwrap();
    };
    raw("{\"measurements._id\": 0}", "{$set: {\"stats.tempSum\": 99}}");
    raw("{\"measurements._id\": 3}", "{$set: {bucketDate: date(120)}}");
    let mut tx = db.begin_as(Mode::Auto, true);
    common::insert(&mut *tx, "readings", &[json("{_id: 9, sensorId: 1, ts: date(7), temp: 3}")]).unwrap();
    tx.commit().unwrap();
    let report = db.validate("readings", false);
    let Some(ValueRef::Array(errors)) = report.as_raw().get("errors") else { panic!() };
    assert!(errors.len() >= 3, "{report:?}");
    db.validate("readings", true);
    db.assert_valid("readings");
    let mut found = db.find("readings", "{}");
    assert_eq!(found.len(), expected.len() + 1);
    found.retain(|doc| shown(doc.as_raw().get("_id").unwrap()) != "9");
    found.sort_by_key(|doc| shown(doc.as_raw().get("_id").unwrap()));
    assert_eq!(found, expected);
    assert!(db.raw("readings", "{}").is_empty());
}

#[test]
fn a_collection_with_documents_is_migrated_while_it_is_written() {
    let db = Db::new();
    db.create("readings", "{}").unwrap();
    let docs: Vec<DocBuf> = (0..2000)
        .map(|n| json(&format!("{{_id: {n}, sensorId: {}, ts: date({}.{:04}), temp: {}}}", n % 5, n / 100, n, n % 30)))
        .collect();
    db.insert("readings", &docs).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..60 {
                put(&db, &format!("{{_id: {}, sensorId: 1, ts: date(5000.{n:04}), temp: 1}}", 5000 + n));
                db.update("readings", &format!("{{_id: {}}}", n * 30), "{$set: {temp: 77}}").unwrap();
                db.delete("readings", &format!("{{_id: {}}}", n * 30 + 1), false).unwrap();
            }
        });
        db.modify("readings", SENSORS).unwrap();
        writer.join().unwrap();
    });
    assert_eq!(db.find("readings", "{}").len(), 2000);
    assert_eq!(db.find("readings", "{temp: 77}").len(), 60);
    assert!(db.raw("readings", "{}").is_empty());
    db.assert_valid("readings");
    let mut before = db.find("readings", "{}");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..40 {
                db.update("readings", &format!("{{_id: {}}}", n * 30), "{$set: {temp: 78}}").unwrap();
                let twice = db.insert("readings", &[json(&format!("{{_id: {}, ts: date(1)}}", n * 30 + 2))]).unwrap();
                assert_eq!(twice.errors[0].1.code().0, 11000);
            }
        });
        db.modify("readings", "{}").unwrap();
        writer.join().unwrap();
    });
    let mut after = db.find("readings", "{}");
    let id = |doc: &DocBuf| espalier_value::key::of(doc.as_raw().get("_id").unwrap());
    before.sort_by_key(id);
    after.sort_by_key(id);
    assert_eq!(before.iter().map(id).collect::<Vec<_>>(), after.iter().map(id).collect::<Vec<_>>());
    assert_eq!(db.find("readings", "{temp: 78}").len(), 40);
    assert!(db.begin().collection(&ns("sensorBuckets")).unwrap().is_none());
}

#[test]
fn documents_that_cannot_be_readings_stop_a_declaration() {
    let db = Db::new();
    db.create("readings", "{}").unwrap();
    put(&db, "{_id: 1, sensorId: 1, ts: date(1)}");
    put(&db, "{_id: 2, sensorId: 1}");
    assert!(db.modify("readings", SENSORS).unwrap_err().message().contains("_id 2"));
    db.update("readings", "{_id: 2}", "{$set: {ts: date(1)}}").unwrap();
    assert!(db.modify("readings", SENSORS).unwrap_err().message().contains("same key"));
    db.update("readings", "{_id: 2}", "{$set: {ts: date(2)}}").unwrap();
    db.modify("readings", SENSORS).unwrap();
    assert_eq!(db.find("readings", "{}").len(), 2);
    db.assert_valid("readings");
}

#[test]
fn dropping_and_renaming_take_the_buckets_along() {
    let db = sensors();
    put(&db, "{_id: 1, sensorId: 1, ts: date(1)}");
    let mut tx = db.begin();
    tx.rename(&ns("readings"), &ns("renamed"), false).unwrap();
    tx.commit().unwrap();
    assert_eq!(db.find("renamed", "{sensorId: 1}").len(), 1);
    db.insert("renamed", &[json("{_id: 2, sensorId: 1, ts: date(2)}")]).unwrap();
    db.assert_valid("renamed");
    let mut tx = db.begin();
    assert!(tx.drop_collection(&ns("renamed")).unwrap());
    tx.commit().unwrap();
    assert!(db.begin().collection(&ns("sensorBuckets")).unwrap().is_none());
}

#[test]
fn health_tells_buckets_and_fill() {
    let db = sensors();
    for n in 0..100 {
        put(&db, &format!("{{_id: {n}, sensorId: {}, ts: date({n}.5)}}", n % 2));
    }
    let stats = db.begin().coll_stats(&ns("readings")).unwrap();
    assert_eq!(stats.count, 100);
    let health = stats.patterns.unwrap();
    let number = |name| shown(health.as_raw().get(name).unwrap());
    assert_eq!((number("buckets"), number("readings"), number("notInBuckets")), ("4".into(), "100".into(), "0".into()));
}

#[test]
fn stored_documents_read_and_written_raw_give_the_same_database() {
    let db = sensors();
    for n in 0..50 {
        put(&db, &format!("{{_id: {n}, sensorId: {}, ts: date({}), temp: {n}}}", n % 3, n * 7));
    }
    put(&db, "{_id: 99, ts: date(5), sensorId: 1.0}");
    let copy = sensors();
    for name in ["readings", "sensorBuckets"] {
        let docs = db.raw(name, "{}");
        let mut tx = copy.begin_as(Mode::Auto, true);
        common::insert(&mut *tx, name, &docs).unwrap();
        tx.commit().unwrap();
    }
    assert_eq!(copy.find("readings", "{}"), db.find("readings", "{}"));
    copy.assert_valid("readings");
}
