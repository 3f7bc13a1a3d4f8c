//! Inserts, finds, updates and deletes through the store seam, with indexes kept right.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use espalier_store::{Begin, Mode, Store, Want};
use espalier_value::{Code, DocBuf, ValueRef, doc};

#[test]
fn natural_order_is_the_order_of_insertion() {
    let engine = engine();
    let docs: Vec<DocBuf> = [5, 3, 9, 1].into_iter().map(|i| doc! { "_id": i }).collect();
    assert_eq!(insert(&engine, &docs).inserted, 4);
    assert_eq!(ids(&engine, &find(&DocBuf::new())), [5, 3, 9, 1]);
    assert_eq!(ids(&engine, &find(&doc! { "_id": 9.0 })), [9]);
}

#[test]
fn a_second_document_with_the_same_id_is_refused() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1 }]);
    let again = insert(&engine, &[doc! { "_id": 2 }, doc! { "_id": 1i64 }, doc! { "_id": 3 }]);
    assert_eq!(again.inserted, 1);
    let (at, error) = &again.errors[0];
    assert_eq!((*at, error.code()), (1, Code::DuplicateKey));
    let info = error.info().unwrap().as_raw();
    assert!(matches!(info.get_doc("keyValue").unwrap().get("_id"), Some(ValueRef::Int64(1))));
    assert_eq!(ids(&engine, &find(&DocBuf::new())), [1, 2]);
    assert_valid(&engine);
}

#[test]
fn updates_keep_every_index() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 2 }]);
    begin(&engine).create_indexes(&ns(), &[index("a_1", &[("a", 1)], true)]).unwrap();
    let done = begin(&engine).update(&ns(), &update(&doc! { "_id": 1 }, &doc! { "$set": &doc! { "a": 7 } })).unwrap();
    assert_eq!((done.matched, done.modified), (1, 1));
    assert_eq!(ids(&engine, &find(&doc! { "a": 7 })), [1]);
    assert!(ids(&engine, &find(&doc! { "a": 1 })).is_empty());
    let taken = begin(&engine).update(&ns(), &update(&doc! { "_id": 1 }, &doc! { "$set": &doc! { "a": 2 } }));
    assert_eq!(taken.unwrap_err().code(), Code::DuplicateKey);
    assert_eq!(ids(&engine, &find(&doc! { "a": 7 })), [1]);
    assert_valid(&engine);
}

#[test]
fn upsert_takes_the_filters_equalities() {
    let engine = engine();
    let mut up = update(&doc! { "k": 5 }, &doc! { "$inc": &doc! { "n": 1 } });
    up.upsert = true;
    up.want = Want::After;
    let first = begin(&engine).update(&ns(), &up).unwrap();
    assert!(first.upserted_id.is_some());
    let second = begin(&engine).update(&ns(), &up).unwrap();
    assert_eq!((second.matched, second.modified), (1, 1));
    assert!(matches!(second.image.unwrap().as_raw().get("n"), Some(ValueRef::Int32(2))));
    assert_valid(&engine);
}

#[test]
fn update_many_meets_each_document_once() {
    let engine = engine();
    let docs: Vec<DocBuf> = (0..500).map(|i| doc! { "_id": i, "a": i }).collect();
    insert(&engine, &docs);
    begin(&engine).create_indexes(&ns(), &[index("a_1", &[("a", 1)], false)]).unwrap();
    // Moves every document forward in the very index it is found by.
    let mut up = update(&doc! { "a": &doc! { "$gte": 0 } }, &doc! { "$inc": &doc! { "a": 1000 } });
    up.multi = true;
    let done = begin(&engine).update(&ns(), &up).unwrap();
    assert_eq!((done.matched, done.modified), (500, 500));
    assert_eq!(begin(&engine).count(&ns(), &find(&doc! { "a": &doc! { "$lt": 1500 } })).unwrap(), 500);
    let gone = begin(&engine).delete(&ns(), &delete(&doc! { "a": &doc! { "$gte": 1250 } }, true)).unwrap();
    assert_eq!(gone.deleted, 250);
    assert_eq!(begin(&engine).count(&ns(), &find(&DocBuf::new())).unwrap(), 250);
    assert_valid(&engine);
}

#[test]
fn a_dropped_collection_leaves_nothing() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1 }]);
    assert!(begin(&engine).drop_collection(&ns()).unwrap());
    assert!(!begin(&engine).drop_collection(&ns()).unwrap());
    assert!(all(&engine, &find(&DocBuf::new())).is_empty());
    insert(&engine, &[doc! { "_id": 1 }]);
    assert_eq!(ids(&engine, &find(&DocBuf::new())), [1]);
    assert_valid(&engine);
}

#[test]
fn a_transaction_may_update_twice_what_a_unique_index_has_several_values_of() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1, "a": &array(&[1]) }, doc! { "_id": 2, "a": &array(&[9]) }]);
    begin(&engine).create_indexes(&ns(), &[index("a_1", &[("a", 1)], true)]).unwrap();
    let begin = Begin { mode: Mode::Transaction, want_changes: false, raw: false, context: context() };
    let mut tx = engine.begin(begin).unwrap();
    for values in [&[1, 2][..], &[2], &[2, 3]] {
        let spec = doc! { "$set": &doc! { "a": &array(values) } };
        assert_eq!(tx.update(&ns(), &update(&doc! { "_id": 1 }, &spec)).unwrap().modified, 1);
    }
    tx.commit().unwrap();
    assert_eq!(ids(&engine, &find(&doc! { "a": 3 })), [1]);
    assert!(ids(&engine, &find(&doc! { "a": 1 })).is_empty());
    let taken = common::begin(&engine).update(&ns(), &update(&doc! { "_id": 2 }, &doc! { "$set": &doc! { "a": 3 } }));
    assert_eq!(taken.unwrap_err().code(), Code::DuplicateKey);
    assert_valid(&engine);
}
