//! Snapshots, own writes, conflicts.

use espalier_store::{Mode, Store};
use espalier_value::Code;

use crate::support::*;

pub fn a_snapshot_does_not_move(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0), numbered(2, 0)]);
    let before = transaction(store);
    assert_eq!(numbers(&*before, "c"), [0, 0]);
    increment(&mut *auto(store), "c", 1).unwrap();
    put(store, "c", &[numbered(3, 0)]);
    auto(store).delete(&ns("c"), &delete_of(2)).unwrap();
    assert_eq!(numbers(&*before, "c"), [0, 0]);
    assert_eq!(before.count(&ns("c"), &everything()).unwrap(), 2);
    assert_eq!(numbers(&*auto(store), "c"), [1, 0]);
}

pub fn own_writes_are_seen_by_their_transaction_alone(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let mut tx = transaction(store);
    increment(&mut *tx, "c", 1).unwrap();
    insert(&mut *tx, "c", &[numbered(2, 5)]).unwrap();
    assert_eq!(numbers(&*tx, "c"), [1, 5]);
    assert_eq!(numbers(&*auto(store), "c"), [0]);
    tx.commit().unwrap();
    assert_eq!(numbers(&*auto(store), "c"), [1, 5]);
}

pub fn the_second_writer_of_a_document_conflicts(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0), numbered(2, 0)]);
    let (mut one, mut two) = (transaction(store), transaction(store));
    increment(&mut *one, "c", 1).unwrap();
    increment(&mut *two, "c", 2).unwrap();
    let late = increment(&mut *two, "c", 1).map(drop).and_then(|()| {
        one.commit().unwrap();
        two.commit().map(drop)
    });
    assert_eq!(late.unwrap_err().code(), Code::WriteConflict);
    let found = numbers(&*auto(store), "c");
    // Whichever was told, nothing of the loser is there.
    assert!(found == [1, 0] || found == [0, 0], "{found:?}");
}

pub fn a_single_write_never_conflicts(store: &dyn Store) {
    const THREADS: usize = 8;
    const EACH: usize = 40;
    put(store, "c", &[numbered(1, 0)]);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let mut tx = auto(store);
                    assert_eq!(increment(&mut *tx, "c", 1).unwrap().modified, 1);
                    tx.commit().unwrap();
                }
            });
        }
    });
    assert_eq!(numbers(&*auto(store), "c"), [(THREADS * EACH) as i64]);
}

pub fn cursors_outlive_their_transaction(store: &dyn Store) {
    put(store, "c", &(0..500).map(|id| numbered(id, 0)).collect::<Vec<_>>());
    let tx = auto(store);
    let mut cursor = tx.find(&ns("c"), &everything()).unwrap();
    assert!(cursor.advance().unwrap());
    drop(tx);
    auto(store).delete(&ns("c"), &espalier_store::Delete { multi: true, ..delete_all() }).unwrap();
    let mut seen = 1;
    while cursor.advance().unwrap() {
        seen += 1;
    }
    assert_eq!(seen, 500);
    assert!(all(&*auto(store), "c").is_empty());
}

fn delete_all() -> espalier_store::Delete {
    espalier_store::Delete { filter: std::sync::Arc::new(espalier_query::Filter::empty()), ..delete_of(0) }
}

pub fn readers_see_what_the_transaction_sees(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let tx = transaction(store);
    let reader = tx.reader();
    increment(&mut *auto(store), "c", 1).unwrap();
    drop(tx);
    assert_eq!(numbers(&*reader, "c"), [0]);
}

pub fn a_snapshot_can_be_had_again_by_its_time(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let (first, time) = store.begin_at(how(Mode::Transaction), None).unwrap();
    assert_eq!(numbers(&*first, "c"), [0]);
    drop(first);
    increment(&mut *auto(store), "c", 1).unwrap();
    let (again, same) = store.begin_at(how(Mode::Transaction), Some(time)).unwrap();
    assert_eq!((numbers(&*again, "c"), same), (vec![0], time));
}
