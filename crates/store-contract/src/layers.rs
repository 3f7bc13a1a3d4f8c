//! What a layer above the store keeps with a collection, and how a change of it meets writes under way.

use std::sync::atomic::{AtomicBool, Ordering};

use espalier_store::{CollectionOptions, Store};
use espalier_value::Code;

use crate::support::*;

/// As the layer itself does: clients may not.
fn set(store: &dyn Store, options: &CollectionOptions) {
    let mut tx = store.begin(espalier_store::Begin { raw: true, ..how(espalier_store::Mode::Auto) }).unwrap();
    tx.set_options(&ns("c"), options).unwrap();
    tx.commit().unwrap();
}

pub fn a_layer_belongs_to_the_snapshot(store: &dyn Store) {
    let raw = || espalier_store::Begin { raw: true, ..how(espalier_store::Mode::Transaction) };
    put(store, "c", &[numbered(1, 0)]);
    let before = store.begin(raw()).unwrap();
    set(store, &layered(1));
    let between = store.begin(raw()).unwrap();
    set(store, &CollectionOptions::default());
    assert!(before.layer(&ns("c")).unwrap().is_none());
    let layer = between.layer(&ns("c")).unwrap().unwrap();
    assert_eq!(int(layer.options().get_doc("patternOwner").unwrap(), "mark"), 1);
    assert!(layer.is(&between.layer(&ns("c")).unwrap().unwrap()), "it is read once");
    assert!(store.begin(raw()).unwrap().layer(&ns("c")).unwrap().is_none());
}

pub fn writes_before_a_change_of_options_settle(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while !stop.load(Ordering::Relaxed) || written < 50 {
                let begin = espalier_store::Begin { raw: true, ..how(espalier_store::Mode::Auto) };
                let mut tx = store.begin(begin).unwrap();
                increment(&mut *tx, "c", 1).unwrap();
                tx.commit().unwrap();
                written += 1;
            }
            written
        });
        for mark in 0..10 {
            set(store, &layered(mark));
            store.settle(&ns("c"), &context()).unwrap();
            set(store, &CollectionOptions::default());
            store.settle(&ns("c"), &context()).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        let written = writer.join().unwrap();
        assert_eq!(numbers(&*auto(store), "c"), [written]);
    });
    store.settle(&ns("nowhere"), &context()).unwrap();
}

pub fn a_change_of_options_ends_a_transaction_that_wrote(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let mut tx = transaction(store);
    increment(&mut *tx, "c", 1).unwrap();
    // A store may let the change wait for the transaction, or let the transaction fail.
    let changed = std::thread::scope(|scope| {
        let change = scope.spawn(|| auto(store).set_options(&ns("c"), &layered(1)));
        std::thread::sleep(std::time::Duration::from_millis(100));
        let committed = tx.commit();
        let changed = change.join().unwrap();
        match committed {
            Ok(_) => assert_eq!(numbers(&*auto(store), "c"), [1]),
            Err(error) => {
                assert_eq!(error.code(), Code::WriteConflict);
                assert_eq!(numbers(&*auto(store), "c"), [0]);
            }
        }
        changed
    });
    changed.unwrap();
}
