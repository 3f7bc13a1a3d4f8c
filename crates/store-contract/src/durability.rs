//! Commits, their order, and what is not one.

use espalier_store::{CommitToken, Store};

use crate::support::*;

pub fn tokens_follow_the_order_of_commits(store: &dyn Store) {
    let mut last = CommitToken::default();
    for id in 0..20 {
        let mut tx = if id % 2 == 0 { auto(store) } else { transaction(store) };
        insert(&mut *tx, "c", &[numbered(id, 0)]).unwrap();
        let token = tx.commit().unwrap();
        assert!(token > last && token.stamp > last.stamp, "{token:?} after {last:?}");
        last = token;
        assert!(store.time() >= token.stamp);
    }
    store.wait_durable(last).unwrap();
    assert!(store.durable_time() >= last.stamp);
    let nothing = auto(store).commit().unwrap();
    store.wait_durable(nothing).unwrap();
    store.flush().unwrap();
}

pub fn what_was_not_committed_has_not_happened(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let mut aborted = transaction(store);
    increment(&mut *aborted, "c", 1).unwrap();
    insert(&mut *aborted, "made", &[numbered(1, 0)]).unwrap();
    aborted.abort();
    let mut dropped = transaction(store);
    increment(&mut *dropped, "c", 1).unwrap();
    drop(dropped);
    assert_eq!(numbers(&*auto(store), "c"), [0]);
    assert!(auto(store).collection(&ns("made")).unwrap().is_none());
    // Nothing that they held is held any more.
    assert_eq!(increment(&mut *auto(store), "c", 1).unwrap().modified, 1);
}
