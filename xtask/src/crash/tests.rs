//! The ledger knows what may be found after a kill, and the check finds what may not.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use bson::doc;

use super::ledger::Ledger;
use super::problems::Problems;
use super::work::{main_states, unique_states};

/// One document known as 0, then 1 and another one, then the first deleted, all in flight.
fn ledger() -> Ledger<i64> {
    let mut ledger = Ledger::new(0);
    ledger.send(1, Some(0));
    ledger.acknowledge();
    ledger.send(1, Some(1));
    ledger.send(2, Some(0));
    ledger.send(1, None);
    ledger
}

fn is_allowed(found: &[(i64, i64)]) -> bool {
    let mut problems = Problems::default();
    ledger().judge("main", found.iter().copied().collect(), &mut problems);
    problems.is_empty()
}

#[test]
fn a_prefix_of_what_was_in_flight_may_have_happened() {
    for found in [&[(1, 0)][..], &[(1, 1)], &[(1, 1), (2, 0)], &[(2, 0)]] {
        assert!(is_allowed(found), "{found:?}");
    }
}

#[test]
fn nothing_else_may_be_found() {
    for found in [&[][..], &[(1, 2)], &[(1, 0), (2, 0)], &[(2, 1)], &[(1, 1), (2, 0), (3, 0)]] {
        assert!(!is_allowed(found), "{found:?}");
    }
}

#[test]
fn what_was_acknowledged_or_refused_is_certain() {
    let mut ledger = ledger();
    ledger.acknowledge();
    ledger.send(3, Some(0));
    ledger.refuse();
    assert_eq!(ledger.known, BTreeMap::from([(2, 0)]));
    let mut problems = Problems::default();
    ledger.judge("main", BTreeMap::from([(2, 0), (3, 0)]), &mut problems);
    assert!(problems.verdict().is_err());
}

#[test]
fn what_was_found_is_known_from_then_on() {
    let mut ledger = ledger();
    ledger.judge("main", BTreeMap::from([(1, 1)]), &mut Problems::default());
    assert_eq!((ledger.known.clone(), ledger.in_flight()), (BTreeMap::from([(1, 1)]), 0));
}

#[test]
fn a_half_applied_document_and_a_double_key_are_found() {
    let mut problems = Problems::default();
    let whole = doc! { "_id": 1i64, "n": 2i64, "mirror": 2i64, "fill": "x".repeat(100) };
    let half = doc! { "_id": 2i64, "n": 2i64, "mirror": 1i64, "fill": "x".repeat(100) };
    assert_eq!(main_states(&[whole], &mut problems).len(), 1);
    assert!(problems.is_empty());
    main_states(&[half], &mut problems);
    assert!(!problems.is_empty());
    let mut problems = Problems::default();
    unique_states(&[doc! { "_id": 1i64, "key": 7i64 }, doc! { "_id": 2i64, "key": 7i64 }], &mut problems);
    assert!(problems.verdict().is_err());
}
