//! Rewriting one document by its `_id`, with somebody else's event and statement in the same commit.

use espalier_store::{Amended, Beside, EventKind, Happening, Remembered, SessionId, Statement, Store, Transaction};
use espalier_value::{RawDoc, Result, ValueRef, doc};

use crate::feeds::told;
use crate::support::*;

const SESSION: SessionId = [4; 16];

/// Adds one to `n`, told as an update of `elsewhere`.
fn add_one(before: RawDoc<'_>, statement: Option<Statement>) -> Amended {
    let Some(ValueRef::Int32(n)) = before.get("n") else { panic!("{before:?}") };
    let Some(ValueRef::Int32(id)) = before.get("_id") else { panic!("{before:?}") };
    let mut event = Happening::new(ns("elsewhere"), EventKind::Update);
    event.key = Some(doc! { "_id": id });
    event.description = Some(doc! { "updatedFields": &doc! { "n": n + 1 } });
    Amended { doc: numbered(id, n + 1), beside: None, event, statement }
}

/// How many events a collection has had.
fn events(store: &dyn Store, name: &str) -> usize {
    told(store, name, 0, false).0.len()
}

fn amend(tx: &mut dyn Transaction, id: i32) -> Result<bool> {
    tx.amend(&ns("c"), ValueRef::Int32(id), &mut |before, _| Ok(Some(add_one(before, None))))
}

pub fn nobody_s_amendment_is_lost(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0), numbered(2, 0)]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let mut tx = auto(store);
                    assert!(amend(&mut *tx, 1).unwrap());
                    tx.commit().unwrap();
                }
            });
        }
    });
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 400), numbered(2, 0)]);
}

pub fn an_amendment_may_be_declined(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let mut tx = auto(store);
    assert!(!tx.amend(&ns("c"), ValueRef::Int32(1), &mut |_, _| Ok(None)).unwrap());
    assert!(!amend(&mut *tx, 2).unwrap(), "there is no such document");
    assert!(!tx.amend(&ns("none"), ValueRef::Int32(1), &mut |_, _| panic!("there is no such collection")).unwrap());
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 0)]);
    assert_eq!(events(store, "elsewhere"), 0);
}

pub fn an_amendment_is_told_as_it_says(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    put(store, "elsewhere", &[numbered(1, 0)]);
    let before = (events(store, "c"), events(store, "elsewhere"));
    let statement = Statement { session: SESSION, txn_number: 9, id: 0 };
    let mut tx = auto(store);
    let mut change = |before: RawDoc<'_>, _: &mut Beside<'_>| Ok(Some(add_one(before, Some(statement))));
    assert!(tx.amend(&ns("c"), ValueRef::Int32(1), &mut change).unwrap());
    tx.commit().unwrap();
    assert_eq!((events(store, "c"), events(store, "elsewhere")), (before.0, before.1 + 1));
    let found = store.remembered(&SESSION, 9).unwrap();
    assert!(matches!(&found[..], [Remembered::Updated(0, updated)] if updated.modified == 1), "{found:?}");
}

pub fn an_amendment_belongs_to_its_transaction(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let mut tx = transaction(store);
    assert!(amend(&mut *tx, 1).unwrap());
    assert_eq!(all(&*tx, "c"), [numbered(1, 1)], "it sees its own");
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 0)], "others do not");
    tx.abort();
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 0)]);
    let mut tx = transaction(store);
    assert!(amend(&mut *tx, 1).unwrap());
    tx.commit().unwrap();
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 1)]);
}

/// Eight clients add to one document, and every tenth of their amendments brings the one beside it up to date.
pub fn an_amendment_may_take_the_document_beside_along(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    put(store, "beside", &[numbered(1, 0), numbered(2, 0)]);
    let events_before = events(store, "beside");
    let change = |before: RawDoc<'_>, beside: &mut Beside<'_>| {
        let mut amended = add_one(before, None);
        let Some(ValueRef::Int32(n)) = amended.doc.as_raw().get("n") else { panic!("{amended:?}") };
        if n % 10 == 0 {
            assert_eq!(beside(&ns("beside")).unwrap(), Some(numbered(1, n - 10)));
            amended.beside = Some(numbered(1, n));
        }
        Ok(Some(amended))
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let mut tx = auto(store);
                    assert!(tx.amend(&ns("c"), ValueRef::Int32(1), &mut { change }).unwrap());
                    tx.commit().unwrap();
                }
            });
        }
        // Somebody else writes what is beside.
        scope.spawn(|| {
            for _ in 0..50 {
                increment(&mut *auto(store), "beside", 2).unwrap();
            }
        });
    });
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 200)]);
    assert_eq!(all(&*auto(store), "beside"), [numbered(1, 200), numbered(2, 50)]);
    assert_eq!(events(store, "beside"), events_before + 50, "what is told is the amendment's event alone");
    let mut tx = auto(store);
    let none = &mut |_: RawDoc<'_>, beside: &mut Beside<'_>| {
        assert_eq!(beside(&ns("none")).unwrap(), None);
        Ok(None)
    };
    assert!(!tx.amend(&ns("c"), ValueRef::Int32(1), none).unwrap());
}
