//! A collection that keeps images for change streams keeps those of logical documents: as they were, and as they are then.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Db, json};
use espalier_query::Interrupt;
use espalier_store::Store;
use espalier_store::feed::{Event, EventKind, Scope, Watch};
use espalier_value::ValueRef;

/// The updates of a collection since a time.
fn updates(db: &Db, name: &str, after: u64) -> Vec<Event> {
    db.store.flush().unwrap();
    let mut feed = db.store.changes(Watch { scope: Scope::Collection(common::ns(name)), raw: false, after }).unwrap();
    let mut events = Vec::new();
    while let Some(event) = feed.next_event(&Interrupt::default(), Some(std::time::Instant::now())).unwrap() {
        if event.what.kind == EventKind::Update {
            events.push(event);
        }
    }
    events
}

/// `n` before and after each update.
fn images(events: &[Event]) -> Vec<(String, String)> {
    let n = |doc: &Option<espalier_value::DocBuf>| match doc.as_ref().map(|doc| doc.as_raw().get("n")) {
        Some(Some(ValueRef::Int32(n))) => n.to_string(),
        other => format!("{other:?}"),
    };
    events.iter().map(|event| (n(&event.what.before), n(&event.what.document))).collect()
}

fn counted(patterns: &str, written: &str, watched: &[&str]) {
    let db = Db::new();
    db.create("p", &format!("{{changeStreamPreAndPostImages: {{enabled: true}}, patterns: [{patterns}]}}")).unwrap();
    db.insert(written, &[json("{_id: 1, n: 1, at: date(5), items: [1, 2, 3]}")]).unwrap();
    let start = db.store.time();
    db.update(written, "{_id: 1}", "{$inc: {n: 1}}").unwrap();
    db.update(written, "{_id: 1}", "{$inc: {n: 1}, $push: {items: 4}}").unwrap();
    let steps = [("1", "2"), ("2", "3")].map(|(a, b)| (a.to_string(), b.to_string()));
    for name in watched {
        assert_eq!(images(&updates(&db, name, start)), steps, "{patterns}, {name}");
    }
}

#[test]
fn updates_have_the_document_before_and_after_them() {
    counted("{outlier: {array: \"items\", threshold: 2, batchSize: 2}}", "p", &["p"]);
    counted("{bucket: {time: \"at\", every: \"1h\"}}", "p", &["p"]);
    counted("{archive: {when: {n: 9}}}", "p", &["p"]);
    counted("{approximate: {fields: [\"m\"]}}", "p", &["p"]);
    counted("{shared: {discriminator: \"t\", name: \"of_{t}\"}}", "of_7", &["of_7", "p"]);
}

#[test]
fn an_increment_that_waits_has_them_too() {
    counted("{approximate: {fields: [\"n\"], stamp: \"s\"}}", "p", &["p"]);
}
