//! Keys that no two documents share.

use std::sync::atomic::{AtomicU32, Ordering};

use espalier_store::Store;
use espalier_value::Code;

use crate::support::*;

fn indexed(store: &dyn Store) {
    let mut tx = auto(store);
    tx.create_indexes(&ns("c"), &[unique("n")]).unwrap();
    tx.commit().unwrap();
}

pub fn a_key_is_taken_once(store: &dyn Store) {
    const THREADS: i32 = 8;
    indexed(store);
    let taken = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for me in 0..THREADS {
            let taken = &taken;
            scope.spawn(move || {
                for key in 0..20 {
                    let mut tx = auto(store);
                    let done = insert(&mut *tx, "c", &[numbered(me * 100 + key, key)]).unwrap();
                    tx.commit().unwrap();
                    taken.fetch_add(done.inserted as u32, Ordering::Relaxed);
                    let refused = done.errors.iter().all(|(_, error)| error.code() == Code::DuplicateKey);
                    assert!(refused, "{:?}", done.errors);
                }
            });
        }
    });
    assert_eq!(taken.load(Ordering::Relaxed), 20);
    let mut found = numbers(&*auto(store), "c");
    found.sort_unstable();
    assert_eq!(found, (0..20).collect::<Vec<_>>());
}

pub fn a_key_is_free_again_after_a_delete(store: &dyn Store) {
    indexed(store);
    put(store, "c", &[numbered(1, 7)]);
    let at = auto(store);
    assert_eq!(at.taken(&ns("c"), numbered(2, 7).as_raw()).unwrap().unwrap().code(), Code::DuplicateKey);
    assert_eq!(at.taken(&ns("c"), numbered(1, 8).as_raw()).unwrap().unwrap().code(), Code::DuplicateKey);
    assert!(at.taken(&ns("c"), numbered(2, 8).as_raw()).unwrap().is_none());
    drop(at);
    let mut tx = transaction(store);
    tx.delete(&ns("c"), &delete_of(1)).unwrap();
    assert!(insert(&mut *tx, "c", &[numbered(2, 7)]).unwrap().errors.is_empty());
    tx.commit().unwrap();
    assert_eq!(all(&*auto(store), "c"), [numbered(2, 7)]);
}

pub fn duplicates_refuse_an_index(store: &dyn Store) {
    put(store, "c", &[numbered(1, 7), numbered(2, 7)]);
    let refused = auto(store).create_indexes(&ns("c"), &[unique("n")]).unwrap_err();
    assert_eq!(refused.code(), Code::DuplicateKey);
    assert_eq!(auto(store).indexes(&ns("c")).unwrap().len(), 1);
    put(store, "c", &[numbered(3, 7)]);
}
