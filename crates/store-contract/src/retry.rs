//! What is remembered of a session's statements, with the writes themselves.

use espalier_store::{Remembered, SessionId, Statement, Store, Update};
use espalier_value::doc;

use crate::support::*;

const SESSION: SessionId = [3; 16];

fn retryable(id: i32) -> Update {
    let statement = Statement { session: SESSION, txn_number: 5, id };
    Update { statement: Some(statement), ..update_of(1, &doc! { "$inc": &doc! { "n": 1 } }) }
}

pub fn what_came_of_a_statement_is_remembered_with_it(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let mut tx = auto(store);
    tx.update(&ns("c"), &retryable(0)).unwrap();
    tx.commit().unwrap();
    let found = store.remembered(&SESSION, 5).unwrap();
    assert!(matches!(&found[..], [Remembered::Updated(0, updated)] if updated.modified == 1), "{found:?}");
    assert!(store.remembered(&SESSION, 6).unwrap().is_empty());
    assert!(store.remembered_sessions().unwrap().iter().any(|s| s.session == SESSION && s.txn_number == 5));
    let mut committed = transaction(store);
    increment(&mut *committed, "c", 1).unwrap();
    committed.remember_commit(&SESSION, 6);
    committed.commit().unwrap();
    assert!(matches!(store.remembered(&SESSION, 6).unwrap()[..], [Remembered::Committed]));
}

pub fn an_aborted_statement_is_forgotten(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let mut tx = transaction(store);
    increment(&mut *tx, "c", 1).unwrap();
    tx.remember(&SESSION, 5, &Remembered::Inserted(vec![1]));
    tx.abort();
    assert!(store.remembered(&SESSION, 5).unwrap().is_empty());
    let mut tx = transaction(store);
    increment(&mut *tx, "c", 1).unwrap();
    tx.remember(&SESSION, 5, &Remembered::Inserted(vec![0, 1, 2]));
    tx.commit().unwrap();
    assert_eq!(store.remembered(&SESSION, 5).unwrap().len(), 1);
    store.forget(&SESSION, 0).unwrap();
    assert!(store.remembered(&SESSION, 5).unwrap().is_empty());
}
