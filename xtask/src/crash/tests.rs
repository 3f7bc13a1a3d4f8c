//! The ledger knows what may be found after a kill, and the check finds what may not.
#![allow(clippy::unwrap_used)]

use bson::doc;

use super::check::{compare, main_states, unique_states};
use super::ledger::Ledger;

#[test]
fn what_was_in_flight_may_have_happened_or_not() {
    let mut ledger = Ledger::new(0);
    let id = ledger.fresh_id();
    ledger.in_flight.insert(id, Some(0));
    ledger.acknowledge();
    ledger.in_flight.insert(id, Some(3));
    let verdict = |found| {
        let mut problems = Vec::new();
        compare("main", id, found, ledger.allowed(id), &mut problems);
        problems.is_empty()
    };
    assert!(verdict(Some(0)) && verdict(Some(3)));
    assert!(!verdict(Some(1)) && !verdict(None), "neither half of it nor nothing");
}

#[test]
fn what_was_acknowledged_must_be_there() {
    let mut ledger = Ledger::new(1);
    let (kept, deleted) = (ledger.fresh_id(), ledger.fresh_id());
    ledger.in_flight.insert(kept, Some(0));
    ledger.in_flight.insert(deleted, Some(0));
    ledger.acknowledge();
    ledger.in_flight.insert(deleted, None);
    ledger.acknowledge();
    assert_eq!(ledger.acknowledged, 3);
    let mut problems = Vec::new();
    compare("main", kept, None, ledger.allowed(kept), &mut problems);
    compare("main", deleted, Some(0), ledger.allowed(deleted), &mut problems);
    assert_eq!(problems.len(), 2, "one lost, one back from the dead");
}

#[test]
fn writers_own_their_ids() {
    let mut ledger = Ledger::new(2);
    let id = ledger.fresh_id();
    assert!(ledger.owns(id) && !Ledger::new(3).owns(id) && !Ledger::new(1).owns(id));
}

#[test]
fn half_applied_updates_and_broken_keys_are_found() {
    let mut problems = Vec::new();
    let whole = doc! { "_id": 1i64, "n": 2i64, "mirror": 2i64, "fill": "x".repeat(100) };
    let half = doc! { "_id": 2i64, "n": 2i64, "mirror": 1i64, "fill": "x".repeat(100) };
    let states = main_states(&[whole.clone(), half, whole], &mut problems);
    assert_eq!(states.into_iter().collect::<Vec<_>>(), [(1, 2)]);
    assert_eq!(problems.len(), 2, "one half applied, one there twice");
    problems.clear();
    unique_states(&[doc! { "_id": 1i64, "key": 5i64 }, doc! { "_id": 2i64, "key": 5i64 }], &mut problems);
    assert_eq!(problems.len(), 1);
}
