//! Counters with the approximate pattern: increments wait beside the document, nothing is lost and nothing counted twice.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Instant;

use common::counters::{PATIENT, declared, health, inc, number, one, run, stored, with};
use common::{Db, context, json, ns, projection, update_spec};
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_query::{Filter, Interrupt};
use espalier_store::feed::{Scope as Watched, Watch};
use espalier_store::{Find, IndexSpec, Mode, Statement, Store, Verbosity, Want};
use espalier_value::{Code, DocBuf, ValueRef, doc};

fn sorted(spec: &str) -> Option<Arc<Sort>> {
    Sort::parse(json(spec).as_raw(), &Scope::default()).unwrap().map(Arc::new)
}

#[test]
fn increments_wait_beside_the_document_and_reads_see_them() {
    let db = declared(PATIENT);
    db.insert("products", &[json("{_id: 1, name: \"a\", m: {views: 10}}")]).unwrap();
    for _ in 0..3 {
        assert_eq!(inc(&db, "2"), (1, 1));
    }
    assert_eq!(inc(&db, "0"), (1, 0));
    assert_eq!(one(&db), json("{_id: 1, name: \"a\", m: {views: 16}}"));
    assert_eq!(stored(&db), json("{_id: 1, name: \"a\", m: {views: 10}}"));
    let pending = db.raw("productsPending", "{}").remove(0);
    assert_eq!(number(&pending, "_id"), 1);
    assert_eq!(number(&pending, "increments"), 3);
    assert_eq!((number(&pending, "from.m.views"), number(&pending, "to.m.views")), (10, 16));
    assert_eq!(number(&health(&db), "pendingIncrements"), 3);
    db.assert_valid("products");
    assert_eq!(number(&run(&db), "moved"), 1);
    assert_eq!(db.raw("productsPending", "{}").len(), 0);
    assert_eq!(number(&stored(&db), "m.views"), 16);
    assert!(matches!(stored(&db).as_raw().get_doc("m").unwrap().get("flushed"), Some(ValueRef::DateTime(_))));
    assert_eq!((number(&health(&db), "flushes"), number(&health(&db), "pendingIncrements")), (1, 0));
    assert_eq!(number(&run(&db), "moved"), 0);
}

#[test]
fn a_document_that_is_not_there_matches_nothing() {
    let db = declared(PATIENT);
    assert_eq!(inc(&db, "1"), (0, 0));
    // D6: an `_id` of another type is another document, not a lost increment.
    db.insert("products", &[json("{_id: 1}")]).unwrap();
    assert_eq!(db.update("products", "{_id: \"1\"}", "{$inc: {likes: 1}}").unwrap().matched, 0);
    assert_eq!(db.raw("productsPending", "{}").len(), 0);
    let done = db.update_with("products", "{_id: 2}", "{$inc: {likes: 5}}", |u| u.upsert = true).unwrap();
    assert!(done.upserted_id.is_some());
    assert_eq!(db.find("products", "{_id: 2}"), [json("{_id: 2, likes: 5}")]);
}

/// D9: a retry after the answer was lost is not a second increment.
#[test]
fn d9_a_retried_increment_counts_once() {
    let db = declared(PATIENT);
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    let session = [7; 16];
    let update = |u: &mut espalier_store::Update| u.statement = Some(Statement { session, txn_number: 3, id: 0 });
    db.update_with("products", "{_id: 1}", "{$inc: {\"m.views\": 1}}", update).unwrap();
    // The server asks before it does it again.
    assert_eq!(db.store.remembered(&session, 3).unwrap().len(), 1);
    assert_eq!(number(&one(&db), "m.views"), 1);
}

#[test]
fn numbers_are_what_one_increment_after_the_other_gives() {
    let db = declared(PATIENT);
    db.create("plain", "{}").unwrap();
    let starts = ["2147483640", "long(9223372036854775800)", "0.1", "decimal(0.1)", "-0.0", "\"text\"", "null", "[1]"];
    let steps =
        ["5", "5", "0.1", "0.2", "decimal(0.3)", "long(1)", "-7", "1e308", "1e308", "long(9223372036854775807)"];
    for start in starts {
        for name in ["products", "plain"] {
            db.delete(name, "{}", true).unwrap();
            db.insert(name, &[json(&format!("{{_id: 1, m: {{views: {start}, z: 1}}}}"))]).unwrap();
        }
        for step in steps {
            let update = format!("{{$inc: {{\"m.views\": {step}}}}}");
            let results = ["products", "plain"].map(|name| match db.update(name, "{_id: 1}", &update) {
                Ok(done) => format!("{} {}", done.matched, done.modified),
                Err(error) => format!("{} {}", error.code().0, error.message()),
            });
            assert_eq!(results[0], results[1], "{start} and {step}");
            let shown = ["products", "plain"].map(|name| db.find(name, "{_id: 1}").remove(0).into_bytes());
            assert_eq!(shown[0], shown[1], "{start} and {step}");
        }
        db.assert_valid("products");
    }
}

#[test]
fn an_overflow_is_refused_when_it_happens_and_changes_nothing() {
    let db = declared(PATIENT);
    db.insert("products", &[json("{_id: 1, m: {views: long(9223372036854775800)}}")]).unwrap();
    assert_eq!(inc(&db, "5"), (1, 1));
    let error = db.update("products", "{_id: 1}", "{$inc: {\"m.views\": 5}}").unwrap_err();
    assert_eq!(error.code(), Code::BadValue);
    run(&db);
    assert_eq!(number(&stored(&db), "m.views"), 9_223_372_036_854_775_805);
}

#[test]
fn images_are_exact_in_both_modes() {
    for read in ["exact", "flushed"] {
        let db = declared(&with(&format!("flush: {{count: 100, within: \"1h\"}}, read: \"{read}\"")));
        db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
        for n in 1..=3 {
            let image = |want| {
                move |u: &mut espalier_store::Update| {
                    u.want = want;
                    u.projection = projection("{_id: 0}", "{}").filter(|_| n == 2);
                }
            };
            let text = "{$inc: {\"m.views\": 1}}";
            let after = db.update_with("products", "{_id: 1}", text, image(Want::After)).unwrap().image.unwrap();
            assert_eq!(number(&after, "m.views"), 2 * n - 1);
            let before = db.update_with("products", "{_id: 1}", text, image(Want::Before)).unwrap().image.unwrap();
            assert_eq!(number(&before, "m.views"), 2 * n - 1);
        }
        // A guarded decrement sees the exact value, whatever reads see.
        let guarded = db.update("products", "{_id: 1, \"m.views\": {$gte: 6}}", "{$inc: {\"m.views\": -6}}").unwrap();
        assert_eq!(guarded.matched, 1);
        let guarded = db.update("products", "{_id: 1, \"m.views\": {$gte: 6}}", "{$inc: {\"m.views\": -6}}").unwrap();
        assert_eq!(guarded.matched, 0);
        let by_search = db.update("products", "{\"m.views\": {$gte: 6}}", "{$inc: {\"m.views\": -6}}").unwrap();
        assert_eq!(by_search.matched, 0);
        assert_eq!(db.update("products", "{\"m.views\": 0}", "{$inc: {\"m.views\": 4}}").unwrap().matched, 1);
    }
}

#[test]
fn filters_sorts_counts_and_distinct_see_what_waits() {
    for indexed in [false, true] {
        let db = declared(PATIENT);
        if indexed {
            let mut tx = db.begin();
            let spec = json("{key: {likes: 1}, name: \"likes_1\"}");
            tx.create_indexes(&ns("products"), &[IndexSpec::parse(spec.as_raw()).unwrap()]).unwrap();
            tx.commit().unwrap();
        }
        let docs: Vec<DocBuf> = (0..50).map(|id| doc! { "_id": id, "likes": id % 10, "x": id % 3 }).collect();
        db.insert("products", &docs).unwrap();
        db.update("products", "{_id: 7}", "{$inc: {likes: 20}}").unwrap();
        db.update("products", "{_id: 8}", "{$inc: {likes: -20}}").unwrap();
        db.update("products", "{_id: 9}", "{$inc: {likes: 1}}").unwrap();
        let ids = |docs: Vec<DocBuf>| docs.iter().map(|doc| number(doc, "_id")).collect::<Vec<_>>();
        assert_eq!(ids(db.find("products", "{likes: {$gt: 9}}")), [7, 9]);
        assert_eq!(ids(db.find("products", "{likes: {$gt: 9}, x: 1}")), [7]);
        assert_eq!(ids(db.find("products", "{likes: -12}")), [8]);
        assert_eq!(db.find("products", "{likes: 7}").len(), 4);
        let top = |spec: &str, skip, limit| {
            ids(db
                .find_with("products", "{}", |find| {
                    find.sort = sorted(spec);
                    (find.skip, find.limit) = (skip, Some(limit));
                    find.projection = projection("{likes: 1}", "{}");
                })
                .unwrap())
        };
        assert_eq!(top("{likes: -1, _id: 1}", 0, 4), [7, 9, 19, 29]);
        assert_eq!(top("{likes: -1, _id: 1}", 1, 2), [9, 19]);
        assert_eq!(top("{likes: 1, _id: 1}", 0, 2), [8, 0]);
        let at = db.begin();
        let filter = |text: &str| {
            let filter = Filter::parse(json(text).as_raw(), &Scope::default()).unwrap();
            Find::new(Arc::new(filter), context())
        };
        assert_eq!(at.count(&ns("products"), &filter("{likes: {$gte: 9}}")).unwrap(), 6);
        assert_eq!(at.count(&ns("products"), &filter("{}")).unwrap(), 50);
        assert_eq!(at.distinct(&ns("products"), "likes", &filter("{}")).unwrap().len(), 13);
        let explained = at.explain(&ns("products"), &filter("{likes: 3}"), Verbosity::ExecutionStats).unwrap();
        let about = explained.as_raw().get_doc("patterns").unwrap().get_doc("approximate").unwrap();
        assert_eq!(number(&DocBuf::from_raw(about), "pendingDocuments"), 3);
        assert_eq!(number(&DocBuf::from_raw(about), "nReturned"), 5);
    }
}

#[test]
fn a_change_stream_has_one_event_for_each_increment() {
    let db = declared(&with("flush: {count: 3, within: \"1h\"}"));
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    db.store.flush().unwrap();
    let start = db.store.time();
    for text in ["{$inc: {\"m.views\": 1}}", "{$inc: {likes: 2}}", "{$inc: {\"m.views\": 1}}", "{$inc: {likes: 1}}"] {
        db.update("products", "{_id: 1}", text).unwrap();
    }
    run(&db);
    db.store.flush().unwrap();
    let mut feed =
        db.store.changes(Watch { scope: Watched::Database("shop".into()), raw: false, after: start }).unwrap();
    let mut told = Vec::new();
    while let Some(event) = feed.next_event(&Interrupt::default(), Some(Instant::now())).unwrap() {
        let fields = event.what.description.unwrap();
        let fields = fields.as_raw().get_doc("updatedFields").unwrap();
        told.push(
            fields
                .iter()
                .map(
                    |e| {
                        if e.name() == "m.flushed" { "m.flushed".into() } else { format!("{}={}", e.name(), e.value()) }
                    },
                )
                .collect::<Vec<_>>()
                .join(" "),
        );
    }
    assert_eq!(told, ["m.views=1", "likes=2", "m.views=2 m.flushed", "likes=3", "m.flushed"]);
}

#[test]
fn transactions_are_isolated_and_conflict_as_on_plain_documents() {
    let db = declared(PATIENT);
    db.insert("products", &[json("{_id: 1, m: {views: 0}}")]).unwrap();
    let mut tx = db.begin_as(Mode::Transaction, false);
    let update = update_spec("{_id: 1}", "{$inc: {\"m.views\": 5}}").unwrap();
    assert_eq!(tx.update(&ns("products"), &update).unwrap().modified, 1);
    assert_eq!(number(&common::find(&*tx, "products", "{}", |_| {}).unwrap()[0], "m.views"), 5);
    assert_eq!(number(&one(&db), "m.views"), 0);
    let mut other = db.begin_as(Mode::Transaction, false);
    assert_eq!(other.update(&ns("products"), &update).unwrap_err().code(), Code::WriteConflict);
    other.abort();
    tx.commit().unwrap();
    assert_eq!(number(&one(&db), "m.views"), 5);
    let mut tx = db.begin_as(Mode::Transaction, false);
    tx.update(&ns("products"), &update).unwrap();
    tx.abort();
    assert_eq!(number(&one(&db), "m.views"), 5);
}

/// Two transactions that see no pending document: one makes it, the other writes the counter or deletes the document.
#[test]
fn a_first_increment_conflicts_with_a_write_of_the_document() {
    enum Other {
        Set,
        Delete,
        Replace,
    }
    for other in [Other::Set, Other::Delete, Other::Replace] {
        for increment_first in [true, false] {
            let db = declared(PATIENT);
            db.insert("products", &[json("{_id: 1, m: {views: 1}}")]).unwrap();
            let mut a = db.begin_as(Mode::Transaction, false);
            let mut b = db.begin_as(Mode::Transaction, false);
            // Both have their snapshot.
            common::find(&*a, "products", "{}", |_| {}).unwrap();
            common::find(&*b, "products", "{}", |_| {}).unwrap();
            let increment = update_spec("{_id: 1}", "{$inc: {\"m.views\": 5}}").unwrap();
            let write = |tx: &mut dyn espalier_store::Transaction| match other {
                Other::Set => {
                    tx.update(&ns("products"), &update_spec("{_id: 1}", "{$set: {\"m.views\": 50}}").unwrap()).map(drop)
                }
                Other::Replace => tx.update(&ns("products"), &update_spec("{_id: 1}", "{n: 1}").unwrap()).map(drop),
                Other::Delete => tx.delete(&ns("products"), &common::delete_spec("{_id: 1}", false).unwrap()).map(drop),
            };
            let second = if increment_first {
                a.update(&ns("products"), &increment).unwrap();
                a.commit().unwrap();
                write(&mut *b)
            } else {
                write(&mut *a).unwrap();
                a.commit().unwrap();
                b.update(&ns("products"), &increment).map(drop)
            };
            assert_eq!(second.unwrap_err().code(), Code::WriteConflict);
            db.assert_valid("products");
        }
    }
}

#[test]
fn one_refused_increment_leaves_those_done_with_it() {
    let db = Arc::new(declared(PATIENT));
    db.insert("products", &[json("{_id: 1, m: {views: long(9223372036854775000)}, likes: 0}")]).unwrap();
    let refused: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..16)
            .map(|client| {
                let db = db.clone();
                scope.spawn(move || {
                    let text = if client % 2 == 0 { "{$inc: {\"m.views\": long(1000)}}" } else { "{$inc: {likes: 1}}" };
                    (0..20).filter(|_| db.update("products", "{_id: 1}", text).is_err()).count()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(refused, 8 * 20);
    assert_eq!((number(&one(&db), "likes"), number(&one(&db), "m.views")), (160, 9_223_372_036_854_775_000));
}

#[test]
fn a_validator_sees_the_counter_as_it_is() {
    let db = Db::new();
    let listed = json(PATIENT);
    let options = espalier_store::CollectionOptions {
        layer: espalier_store::Layer::of(listed.as_raw()),
        listed,
        validator: Some(json("{likes: {$lte: 3}}")),
        ..Default::default()
    };
    let mut tx = db.begin();
    tx.create(&ns("products"), &options).unwrap();
    tx.commit().unwrap();
    db.insert("products", &[json("{_id: 1, likes: 1}")]).unwrap();
    let like = || db.update("products", "{_id: 1}", "{$inc: {likes: 1}}");
    assert_eq!((like().unwrap().modified, like().unwrap().modified), (1, 1));
    assert_eq!(like().unwrap_err().code(), Code::DocumentValidationFailure);
    assert_eq!(number(&one(&db), "likes"), 3);
    assert_eq!(number(&stored(&db), "likes"), 1);
    let error = db.update("products", "{_id: 1}", "{$inc: {likes: 1}, $set: {x: 1}}").unwrap_err();
    assert_eq!(error.code(), Code::DocumentValidationFailure);
}

#[test]
fn what_cannot_be_is_refused() {
    let db = Db::new();
    for (options, path) in [
        ("{}", "approximate.fields"),
        ("{fields: []}", "approximate.fields"),
        ("{fields: [\"a\", \"a.b\"]}", "approximate.fields.1"),
        ("{fields: [\"a\"], flush: {count: 0}}", "approximate.flush.count"),
        ("{fields: [\"a\"], flush: {within: \"soon\"}}", "approximate.flush.within"),
        ("{fields: [\"a\"], flush: {every: 1}}", "approximate.flush.every"),
        ("{fields: [\"a\"], stamp: \"a.at\"}", "approximate.stamp"),
        ("{fields: [\"a\"], read: \"maybe\"}", "approximate.read"),
        ("{fields: [\"a\"], durable: 1}", "approximate.durable"),
        ("{fields: [\"a\"], into: \"products\"}", "approximate.into"),
        ("{fields: [\"a\"], speed: 9}", "approximate.speed"),
    ] {
        let error = db.create("products", &format!("{{patterns: [{{approximate: {options}}}]}}")).unwrap_err();
        assert!(error.message().contains(path), "{options}: {}", error.message());
    }
    db.create("products", PATIENT).unwrap();
    db.insert("products", &[json("{_id: 1, m: {views: 1, flushed: date(5)}}")]).unwrap();
    let error = db.insert("products", &[json("{_id: 2, m: {flushed: 3}}")]).unwrap().errors.remove(0).1;
    assert_eq!(error.code(), Code::ImmutableField);
    for text in
        ["{$set: {\"m.flushed\": date(1)}}", "{$inc: {likes: 1}, $unset: {\"m.flushed\": 1}}", "{m: {flushed: 1}}"]
    {
        let error = db.update("products", "{_id: 1}", text).unwrap_err();
        assert!(error.message().contains("'approximate'"), "{}", error.message());
    }
    // What was read some time ago may be written back; the stamp stays the pattern's.
    db.update("products", "{_id: 1}", "{m: {views: 9, flushed: date(1)}}").unwrap();
    assert_eq!(one(&db), json("{_id: 1, m: {views: 9, flushed: date(5)}}"));
    let mut tx = db.begin();
    for spec in [
        "{key: {\"m.views\": 1}, name: \"a\", unique: true}",
        "{key: {x: 1, likes: 1}, name: \"a\", unique: true}",
        "{key: {x: 1}, name: \"a\", unique: true, partialFilterExpression: {likes: {$gt: 1}}}",
    ] {
        let spec = IndexSpec::parse(json(spec).as_raw()).unwrap();
        let error = tx.create_indexes(&ns("products"), &[spec]).unwrap_err();
        assert!(error.message().contains("'approximate'"), "{}", error.message());
    }
    let spec = IndexSpec::parse(json("{key: {likes: 1}, name: \"a\", unique: true}").as_raw()).unwrap();
    tx.create_indexes(&ns("other"), &[spec]).unwrap();
    tx.commit().unwrap();
    assert!(db.modify("other", PATIENT).unwrap_err().message().contains("'approximate'"));
    let error = db.insert("productsPending", &[json("{_id: 1}")]).unwrap_err();
    assert!(error.message().contains("'approximate'"), "{}", error.message());
}
