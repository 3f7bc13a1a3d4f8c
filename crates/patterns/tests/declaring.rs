//! Declarations that cannot be: refused with the path of what is wrong, and nothing is left of them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Db, json, ns};
use espalier_store::IndexSpec;
use espalier_value::Error;

/// What is stored, with its options, beside the patterns' own book.
fn stored(db: &Db) -> Vec<String> {
    let all = db.begin().collections("shop").unwrap();
    let all = all.iter().filter(|info| info.name != "system.patterns");
    all.map(|info| format!("{} {}", info.name, info.options.listed.as_raw())).collect()
}

/// Refused on a new collection and on one that is there, which both leaves as it was.
fn refused(db: &Db, patterns: &str, part: &str) {
    let options = format!("{{patterns: [{patterns}]}}");
    let before = stored(db);
    let check = |error: Error| {
        assert!(error.message().contains(part), "{patterns}: {}", error.message());
        assert_eq!(stored(db), before, "{patterns}");
    };
    check(db.create("fresh", &options).unwrap_err());
    check(db.modify("t", &options).unwrap_err());
}

const COUNT: &str = "into: \"s\", fields: {n: {$count: {}}}";

fn with_source() -> Db {
    let db = Db::new();
    db.create("t", "{}").unwrap();
    db.create("src", "{}").unwrap();
    db
}

#[test]
fn a_link_names_each_field_once_and_none_that_the_pattern_keeps() {
    let db = with_source();
    let on = |on: &str| format!("{{computed: {{from: \"src\", on: {on}, {COUNT}}}}}");
    refused(&db, &on("{p: \"_id\", q: \"_id\"}"), "patterns.0.computed.on.q:");
    refused(&db, &on("{p: \"s\"}"), "patterns.0.computed.on:");
    refused(&db, &on("{p: \"s.n\"}"), "patterns.0.computed.on:");
    let top = "{subset: {from: \"src\", on: {p: \"s.x\"}, into: \"s\", sort: {a: 1}}}";
    refused(&db, top, "patterns.0.subset.on:");
    let copy =
        |on: &str, into: &str| format!("{{reference: {{from: \"src\", on: {on}, into: \"{into}\", fields: [\"a\"]}}}}");
    refused(&db, &copy("{p: \"_id\"}", "p"), "patterns.0.reference.on:");
    refused(&db, &copy("{\"c.a\": \"_id\"}", "c"), "patterns.0.reference.on:");
    // Beside what is copied it may stand.
    db.create("fresh", &format!("{{patterns: [{}]}}", copy("{\"c.id\": \"_id\"}", "c"))).unwrap();
}

#[test]
fn a_name_that_no_collection_can_have_is_refused() {
    let db = with_source();
    for (kind, options) in [
        ("outlier", "array: \"a\""),
        ("bucket", "by: [\"a\"]"),
        ("archive", "when: {a: 1}"),
        ("approximate", "fields: [\"a\"]"),
    ] {
        refused(&db, &format!("{{{kind}: {{{options}, into: \".x\"}}}}"), &format!("patterns.0.{kind}.into:"));
        refused(&db, &format!("{{{kind}: {{{options}, into: \"src\"}}}}"), &format!("{kind}.into:"));
    }
    refused(&db, &format!("{{computed: {{from: \".x\", on: {{p: \"_id\"}}, {COUNT}}}}}"), "patterns.0.computed.from:");
}

#[test]
fn what_was_made_for_a_pattern_goes_if_it_cannot_be_declared() {
    let db = with_source();
    let specs: Vec<IndexSpec> = (0..63)
        .map(|at| IndexSpec::parse(json(&format!("{{key: {{f{at}: 1}}, name: \"f{at}\"}}")).as_raw()).unwrap())
        .collect();
    for name in ["t", "src"] {
        let mut tx = db.begin();
        tx.create_indexes(&ns(name), &specs).unwrap();
        tx.commit().unwrap();
    }
    // The source cannot have another index; nor can the buckets have those of the collection beside their own.
    let computed = format!("{{computed: {{from: \"src\", on: {{p: \"_id\"}}, {COUNT}}}}}");
    refused(&db, &computed, "too many indexes");
    let before = stored(&db);
    let error = db.modify("t", "{patterns: [{bucket: {by: [\"a\"]}}]}").unwrap_err();
    assert!(error.message().contains("too many indexes"), "{}", error.message());
    assert_eq!(stored(&db), before);
}

#[test]
fn documents_may_not_have_the_field_that_counts_batches_before() {
    let db = with_source();
    db.insert("t", &[json("{_id: 1, a: [1, 2, 3], overflowCount: 0}")]).unwrap();
    let before = stored(&db);
    let outlier = "{patterns: [{outlier: {array: \"a\", threshold: 2}}]}";
    let error = db.modify("t", outlier).unwrap_err();
    assert!(error.message().contains("outlier.batches") && error.message().contains("_id 1"), "{}", error.message());
    assert_eq!(stored(&db), before);
    db.update("t", "{}", "{$unset: {overflowCount: 1}}").unwrap();
    db.modify("t", outlier).unwrap();
    db.assert_valid("t");
    // Back again and in with other options: the fields are the pattern's own.
    db.modify("t", "{patterns: [{outlier: {array: \"a\", threshold: 1}}]}").unwrap();
    db.assert_valid("t");
}

#[test]
fn a_stamp_is_a_value_or_a_time() {
    let db = with_source();
    for stamp in ["\"$x\"", "\"$$ROOT\"", "{$add: [1, 2]}", "[{b: \"$x\"}]"] {
        refused(&db, &format!("{{archive: {{when: {{a: 1}}, stamp: {{s: {stamp}}}}}}}"), "patterns.0.archive.stamp.s:");
    }
    let fine = "{patterns: [{archive: {when: {a: 1}, stamp: {s: {at: \"$$NOW + 30d\", by: \"us$\"}}}}]}";
    db.create("fresh", fine).unwrap();
}

/// One that is cut off is not there after a restart, and nobody would make another.
#[test]
fn an_index_that_is_still_being_built_is_waited_for() {
    let db = with_source();
    let docs: Vec<_> = (0..30_000).map(|id| json(&format!("{{_id: {id}, p: {}}}", id % 100))).collect();
    db.insert("src", &docs).unwrap();
    let building = || db.begin().indexes(&ns("src")).unwrap().iter().any(|index| index.building);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let spec = IndexSpec::parse(json("{key: {p: 1, x: 1}, name: \"wide\"}").as_raw()).unwrap();
            db.begin().create_indexes(&ns("src"), &[spec]).unwrap();
        });
        while !building() && db.begin().indexes(&ns("src")).unwrap().len() == 1 {
            std::thread::yield_now();
        }
        let computed = format!("{{patterns: [{{computed: {{from: \"src\", on: {{p: \"_id\"}}, {COUNT}}}}}]}}");
        db.create("fresh", &computed).unwrap();
        assert!(!building());
    });
    assert_eq!(db.begin().indexes(&ns("src")).unwrap().len(), 2);
}

#[test]
fn what_a_pattern_keeps_is_no_source_and_has_no_options_or_indexes_of_clients() {
    let db = with_source();
    for (name, pattern, kept) in [
        ("r", "{bucket: {by: [\"s\"]}}", "rBuckets"),
        ("o", "{outlier: {array: \"a\"}}", "aOverflow"),
        ("h", "{archive: {when: {s: 1}}}", "hArchive"),
        ("n", "{approximate: {fields: [\"s\"]}}", "nPending"),
    ] {
        db.create(name, &format!("{{patterns: [{pattern}]}}")).unwrap();
        let source = format!("{{computed: {{from: \"{kept}\", on: {{s: \"_id\"}}, {COUNT}}}}}");
        refused(&db, &source, &format!("name {name} as the source"));
        let indexes = || -> Vec<String> {
            let all = db.begin_as(espalier_store::Mode::Auto, true).indexes(&ns(kept)).unwrap();
            all.iter().map(|index| index.spec.name.to_string()).collect()
        };
        let before = (stored(&db), indexes());
        let spec = IndexSpec::parse(json("{key: {x: 1}, name: \"x\"}").as_raw()).unwrap();
        assert!(db.begin().create_indexes(&ns(kept), std::slice::from_ref(&spec)).is_err(), "{kept}");
        for index in &before.1 {
            assert!(db.begin().drop_index(&ns(kept), index).is_err(), "{kept}, {index}");
            assert!(db.begin().set_index(&ns(kept), index, &spec).is_err(), "{kept}, {index}");
        }
        assert!(db.modify(kept, "{validator: {x: 1}}").is_err(), "{kept}");
        assert_eq!((stored(&db), indexes()), before);
        // Tools that work on what is stored can.
        db.begin_as(espalier_store::Mode::Auto, true).create_indexes(&ns(kept), &[spec]).unwrap();
    }
}

#[test]
fn a_list_with_a_name_that_is_taken_is_refused_whole() {
    let db = with_source();
    let outlier = "{outlier: {array: \"a\", threshold: 2}}";
    db.modify("t", &format!("{{patterns: [{outlier}]}}")).unwrap();
    db.insert("t", &[json("{_id: 1, a: [1, 2, 3, 4], g: 1}")]).unwrap();
    let before = stored(&db);
    let computed = format!("{{computed: {{from: \"src\", on: {{p: \"_id\"}}, {COUNT}}}}}");
    let taken = format!("{{patterns: [{computed}, {{bucket: {{by: [\"g\"], into: \"src\"}}}}]}}");
    assert!(db.modify("t", &taken).unwrap_err().message().contains("bucket.into"));
    assert_eq!(stored(&db), before);
    // The name of what goes is free.
    let free = format!("{{patterns: [{computed}, {{bucket: {{by: [\"g\"], into: \"aOverflow\"}}}}]}}");
    db.modify("t", &free).unwrap();
    db.assert_valid("t");
    assert_eq!(db.find("t", "{a: 4, \"s.n\": 0}").len(), 1);
}

/// Several steps, of which a later one cannot be done: those before it are taken back.
#[test]
fn a_list_whose_last_step_fails_leaves_what_was_there() {
    let db = with_source();
    let tags = (0..30).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    db.insert("t", &[json(&format!("{{_id: 1, n: 5, tags: [{tags}]}}"))]).unwrap();
    db.insert("src", &[json("{_id: 1, of: 1}")]).unwrap();
    let outlier = "{outlier: {array: \"tags\", threshold: 10, batchSize: 10}}";
    let computed = format!("{{computed: {{from: \"src\", on: {{of: \"_id\"}}, {COUNT}}}}}");
    // Documents have what would be the archive's stamp.
    let archive = "{archive: {when: {n: 1}, stamp: {n: 1}}}";
    db.modify("t", &format!("{{patterns: [{outlier}]}}")).unwrap();
    let (before, document) = (stored(&db), db.find("t", "{}"));
    db.modify("t", &format!("{{patterns: [{archive}, {computed}]}}")).unwrap_err();
    let after = stored(&db);
    assert_eq!(after, before);
    let left = common::plain(&db.find("t", "{}")[0], &["s"]);
    assert_eq!(left, common::plain(&document[0], &["s"]));
    db.assert_valid("t");
    // Nothing follows any more.
    db.insert("src", &[json("{_id: 2, of: 1}")]).unwrap();
    assert!(db.find("t", "{\"s.n\": 2}").is_empty());
    db.modify("t", &format!("{{patterns: [{outlier}, {computed}]}}")).unwrap();
    assert_eq!(db.find("t", "{\"s.n\": 2}").len(), 1);
}
