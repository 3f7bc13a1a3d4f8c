//! Migrations and runs are seen while they work, and can be stopped: nothing is lost on the way back.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{Db, Random, context, json, ns, plain};
use espalier_store::Store;
use espalier_value::{Code, DocBuf, Error, ValueRef};

const OUTLIER: &str = "{patterns: [{outlier: {array: \"tags\", threshold: 5, batchSize: 5}}]}";
const OWNED: [&str; 3] = ["tagCount", "hasOverflow", "overflowCount"];
const DOCUMENTS: i32 = 3_000;

fn filled() -> Db {
    let db = Db::new();
    db.create("c", "{}").unwrap();
    let tags = (0..20).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let docs: Vec<DocBuf> = (0..DOCUMENTS).map(|id| json(&format!("{{_id: {id}, tags: [{tags}]}}"))).collect();
    db.insert("c", &docs).unwrap();
    db
}

/// The collection's documents without what a pattern adds, in the order of their `_id`s.
fn documents(db: &Db) -> Vec<DocBuf> {
    let mut docs: Vec<DocBuf> = db.find("c", "{}").iter().map(|doc| plain(doc, &OWNED)).collect();
    docs.sort_by_key(|doc| espalier_value::key::of(doc.as_raw().get("_id").unwrap()));
    docs
}

fn options(db: &Db) -> DocBuf {
    db.begin().collection(&ns("c")).unwrap().unwrap().options.listed
}

/// Waits until a job of this kind has done something, and gives its number and how far it is.
fn under_way(db: &Db, desc: &str) -> (u64, i64, i64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        assert!(Instant::now() < deadline, "no {desc} was seen");
        for job in db.store.jobs() {
            let number = |doc: espalier_value::RawDoc<'_>, name: &str| match doc.get(name) {
                Some(ValueRef::Int64(n)) => n,
                other => panic!("{name}: {other:?}"),
            };
            let progress = job.as_raw().get_doc("progress").unwrap();
            let done = number(progress, "done");
            // A run that is short does not count what it will do.
            let total = progress.get("total").map_or(done, |_| number(progress, "total"));
            if job.as_raw().get_str("desc") == Some(desc) && done > 0 {
                return (number(job.as_raw(), "opid") as u64, done, total);
            }
        }
    }
}

/// Stops a `collMod` in the middle.
fn modify_and_kill(db: &Db, to: &str) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let modify = scope.spawn(|| db.modify("c", to));
        let (op, done, total) = under_way(db, "PatternMigration");
        assert!(done <= total && total == i64::from(DOCUMENTS), "{done}/{total}");
        assert!(db.store.kill_job(op));
        modify.join().unwrap()
    })
}

#[test]
fn a_declaration_that_is_stopped_leaves_plain_documents() {
    let db = filled();
    let before = documents(&db);
    assert_eq!(modify_and_kill(&db, OUTLIER).unwrap_err().code(), Code::Interrupted);
    assert!(options(&db).is_empty(), "{:?}", options(&db));
    assert_eq!(db.raw("c", "{}").len(), DOCUMENTS as usize);
    assert!(db.raw("c", "{overflowCount: {$exists: true}}").is_empty());
    assert!(db.begin().collection(&ns("tagOverflow")).unwrap().is_none());
    assert_eq!(documents(&db), before);
    assert!(db.store.jobs().is_empty());
    // It can be declared again.
    db.modify("c", OUTLIER).unwrap();
    db.assert_valid("c");
    assert_eq!(documents(&db), before);
}

#[test]
fn a_dropping_that_is_stopped_keeps_the_pattern() {
    let db = filled();
    db.modify("c", OUTLIER).unwrap();
    let before = documents(&db);
    assert_eq!(modify_and_kill(&db, "{}").unwrap_err().code(), Code::Interrupted);
    assert!(options(&db).as_raw().elem("patterns").is_some());
    assert!(options(&db).as_raw().elem("patternJob").is_none());
    db.assert_valid("c");
    assert_eq!(documents(&db), before);
    assert!(db.raw("c", "{overflowCount: {$exists: false}}").is_empty());
}

#[test]
fn a_derivation_that_is_stopped_leaves_what_was_declared_before() {
    let db = filled();
    let sales: Vec<DocBuf> = (0..200).map(|id| json(&format!("{{_id: {id}, of: {}, price: 5}}", id % 7))).collect();
    db.create("sales", "{}").unwrap();
    db.insert("sales", &sales).unwrap();
    let declared = |fields: &str| {
        format!(
            "{{patterns: [{{computed: {{from: \"sales\", on: {{of: \"_id\"}}, into: \"sold\", fields: {fields}}}}}]}}"
        )
    };
    // With nothing before it, what it had filled in is anybody's.
    assert_eq!(modify_and_kill(&db, &declared("{n: {$count: {}}}")).unwrap_err().code(), Code::Interrupted);
    assert!(options(&db).as_raw().elem("patterns").is_none() && options(&db).as_raw().elem("patternJob").is_none());
    db.assert_valid("c");
    assert_eq!(db.update("c", "{_id: 1}", "{$set: {\"sold.n\": 7}}").unwrap().modified, 1);
    // With something before it, that holds again.
    db.modify("c", &declared("{n: {$count: {}}}")).unwrap();
    assert_eq!(modify_and_kill(&db, &declared("{n: {$sum: \"$price\"}}")).unwrap_err().code(), Code::Interrupted);
    let listed = options(&db);
    assert!(listed.as_raw().elem("patternJob").is_none());
    assert!(listed.as_raw().to_string().contains("$count"), "{listed:?}");
    db.assert_valid("c");
    db.insert("sales", &[json("{_id: 1000, of: 1, price: 5}")]).unwrap();
    assert_eq!(db.find("c", "{_id: 1, \"sold.n\": 30}").len(), 1);
    assert!(db.store.jobs().is_empty());
}

#[test]
fn what_cannot_become_another_pattern_keeps_the_one_it_has() {
    let db = filled();
    db.modify("c", OUTLIER).unwrap();
    let before = documents(&db);
    // They have no time.
    let bucket = "{patterns: [{bucket: {by: [\"s\"], time: \"ts\", every: \"1h\"}}]}";
    let error = db.modify("c", bucket).unwrap_err();
    assert!(error.message().contains("ts"), "{error:?}");
    let listed = options(&db);
    let Some(ValueRef::Array(patterns)) = listed.as_raw().get("patterns") else { panic!("{listed:?}") };
    assert!(patterns.iter().next().unwrap().as_doc().unwrap().get_doc("outlier").is_some());
    assert!(listed.as_raw().elem("patternJob").is_none());
    db.assert_valid("c");
    assert_eq!(documents(&db), before);
    assert_eq!(db.update("c", "{_id: 1}", "{$push: {tags: 99}}").unwrap().modified, 1);
    db.assert_valid("c");
}

#[test]
fn a_collection_that_is_being_migrated_is_valid_and_keeps_its_name() {
    let db = filled();
    std::thread::scope(|scope| {
        let modify = scope.spawn(|| db.modify("c", OUTLIER));
        under_way(&db, "PatternMigration");
        let mut tx = db.begin();
        let report = tx.validate(&ns("c"), false, false).unwrap();
        let renamed = tx.rename(&ns("c"), &ns("d"), false);
        // Unless it has ended meanwhile.
        if !db.store.jobs().is_empty() {
            assert_eq!(renamed.unwrap_err().code().0, 117);
            assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(true))), "{report:?}");
        }
        modify.join().unwrap().unwrap();
    });
    db.assert_valid("c");
}

#[test]
fn a_run_that_is_stopped_leaves_what_is_still_due() {
    let db = Db::new();
    db.create("c", "{patterns: [{archive: {when: {done: true}, into: \"old\", every: \"1h\"}}]}").unwrap();
    let docs: Vec<DocBuf> = (0..DOCUMENTS).map(|id| json(&format!("{{_id: {id}, done: true}}"))).collect();
    db.insert("c", &docs).unwrap();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| db.store.run_pattern(&ns("c"), &context()));
        let (op, ..) = under_way(&db, "PatternRun");
        assert!(db.store.kill_job(op));
        assert_eq!(run.join().unwrap().unwrap_err().code(), Code::Interrupted);
    });
    let (active, archived) = (db.raw("c", "{}").len(), db.raw("old", "{}").len());
    assert_eq!(active + archived, DOCUMENTS as usize);
    assert!(active > 0 && archived > 0, "{active} and {archived}");
    db.store.run_pattern(&ns("c"), &context()).unwrap();
    assert_eq!(db.raw("old", "{}").len(), DOCUMENTS as usize);
    db.assert_valid("c");
    assert!(!db.store.kill_job(1));
}

/// Sixteen clients who never stop updating what it moves: it takes fewer documents at a time rather than starting over with
/// many, and everything that was acknowledged is there.
#[test]
fn a_migration_ends_while_many_clients_update_what_it_moves() {
    const READINGS: u64 = 1_000;
    let db = Db::new();
    db.create("readings", "{}").unwrap();
    let docs: Vec<DocBuf> =
        (0..READINGS).map(|n| json(&format!("{{_id: {n}, s: {}, ts: date({}.5), n: 0}}", n % 20, n / 100))).collect();
    db.insert("readings", &docs).unwrap();
    let (over, updates) = (AtomicBool::new(false), AtomicU64::new(0));
    let since = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..16 {
            let (db, over, updates) = (&db, &over, &updates);
            scope.spawn(move || {
                let mut random = Random(client + 1);
                while !over.load(Ordering::Relaxed) {
                    let id = random.below(READINGS);
                    let updated = db.update("readings", &format!("{{_id: {id}}}"), "{$inc: {n: 1}}").unwrap();
                    updates.fetch_add(updated.modified, Ordering::Relaxed);
                    assert!(since.elapsed() < Duration::from_secs(120), "the migration does not end");
                }
            });
        }
        let patterns = "{patterns: [{bucket: {by: [\"s\"], time: \"ts\", every: \"1h\"}}]}";
        let both = db.modify("readings", patterns).and_then(|()| {
            db.assert_valid("readings");
            db.modify("readings", "{}")
        });
        over.store(true, Ordering::Relaxed);
        both.unwrap();
    });
    let readings = db.find("readings", "{}");
    assert_eq!(readings.len(), READINGS as usize);
    let counted = readings.iter().map(|doc| match doc.as_raw().get("n") {
        Some(ValueRef::Int32(n)) => n as u64,
        other => panic!("{other:?}"),
    });
    assert_eq!(counted.sum::<u64>(), updates.load(Ordering::Relaxed));
}
