//! What change streams are told.

use espalier_query::Interrupt;
use espalier_store::{EventKind, Happening, Scope, Store, Watch};
use espalier_value::doc;

use crate::support::*;

/// The events of a collection after a stamp: their kinds and the `_id`s they are about, and the last stamp.
pub fn told(store: &dyn Store, name: &str, after: u64, raw: bool) -> (Vec<(EventKind, i64)>, Vec<u64>) {
    store.wait_durable(Default::default()).unwrap();
    let mut feed = store.changes(Watch { scope: Scope::Collection(ns(name)), raw, after }).unwrap();
    let (mut events, mut stamps) = (Vec::new(), Vec::new());
    while let Some(event) = feed.next_event(&Interrupt::default(), None).unwrap() {
        if let Some(key) = &event.what.key {
            events.push((event.what.kind, int(key.as_raw(), "_id")));
            stamps.push(event.stamp);
        }
    }
    (events, stamps)
}

pub fn every_change_is_told_once_and_in_order(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0), numbered(2, 0)]);
    put(store, "other", &[numbered(9, 0)]);
    increment(&mut *auto(store), "c", 1).unwrap();
    let mut tx = transaction(store);
    tx.delete(&ns("c"), &delete_of(1)).unwrap();
    insert(&mut *tx, "c", &[numbered(3, 0)]).unwrap();
    tx.commit().unwrap();
    let mut aborted = transaction(store);
    increment(&mut *aborted, "c", 2).unwrap();
    aborted.abort();
    // What changes nothing is no change.
    auto(store).update(&ns("c"), &update_of(2, &doc! { "$set": &doc! { "n": 0 } })).unwrap();
    let (events, stamps) = told(store, "c", 0, false);
    use EventKind::{Delete, Insert, Update};
    assert_eq!(events, [(Insert, 1), (Insert, 2), (Update, 1), (Delete, 1), (Insert, 3)]);
    assert!(stamps.is_sorted());
    assert_eq!(stamps[3], stamps[4], "a transaction is one commit");
}

pub fn a_feed_goes_on_from_a_stamp(store: &dyn Store) {
    for id in 0..5 {
        put(store, "c", &[numbered(id, 0)]);
    }
    let (_, stamps) = told(store, "c", 0, false);
    let (events, _) = told(store, "c", stamps[2], false);
    assert_eq!(events, [(EventKind::Insert, 3), (EventKind::Insert, 4)]);
    assert!(told(store, "c", stamps[4], false).0.is_empty());
}

pub fn silence_is_for_announcements(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let after = store.time();
    let mut tx = transaction(store);
    tx.set_silent(true);
    increment(&mut *tx, "c", 1).unwrap();
    let mut event = Happening::new(ns("c"), EventKind::Replace);
    event.key = Some(doc! { "_id": 77 });
    event.document = Some(doc! { "_id": 77 });
    tx.announce(event).unwrap();
    tx.commit().unwrap();
    assert_eq!(told(store, "c", after, false).0, [(EventKind::Replace, 77)]);
    assert_eq!(told(store, "c", after, true).0, [(EventKind::Update, 1)]);
}
