//! What writes answer, and the changes they hand out.

use espalier_store::{Begin, Mode, Store, Update, Want};
use espalier_value::{Code, DocBuf, Value, ValueRef, doc};

use crate::support::*;

pub fn changes_are_handed_out(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0), numbered(2, 0)]);
    let mut tx = store.begin(Begin { want_changes: true, ..how(Mode::Transaction) }).unwrap();
    increment(&mut *tx, "c", 1).unwrap();
    tx.delete(&ns("c"), &delete_of(2)).unwrap();
    insert(&mut *tx, "c", &[numbered(3, 9)]).unwrap();
    let changes = tx.take_changes();
    let shown: Vec<_> = changes.iter().map(|change| (change.before.clone(), change.after.clone())).collect();
    assert_eq!(
        shown,
        [(Some(numbered(1, 0)), Some(numbered(1, 1))), (Some(numbered(2, 0)), None), (None, Some(numbered(3, 9))),]
    );
    assert!(changes.iter().all(|change| change.collection == ns("c")));
    assert!(tx.take_changes().is_empty());
    tx.commit().unwrap();
}

pub fn an_ordered_insert_stops_at_the_first_error(store: &dyn Store) {
    put(store, "c", &[numbered(2, 0)]);
    let mut tx = auto(store);
    let done = insert(&mut *tx, "c", &[numbered(1, 0), numbered(2, 1), numbered(3, 0)]).unwrap();
    tx.commit().unwrap();
    assert_eq!((done.inserted, done.errors.len(), done.errors[0].0), (1, 1, 1));
    assert_eq!(done.errors[0].1.code(), Code::DuplicateKey);
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 0), numbered(2, 0)]);
}

pub fn an_upsert_makes_one_document(store: &dyn Store) {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut tx = auto(store);
                let upsert = Update { upsert: true, ..update_of(5, &doc! { "$inc": &doc! { "n": 1 } }) };
                tx.update(&ns("c"), &upsert).unwrap();
                tx.commit().unwrap();
            });
        }
    });
    assert_eq!(all(&*auto(store), "c"), [numbered(5, 8)]);
}

/// The statements of one command.
pub fn a_write_sees_the_writes_before_it(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let mut tx = auto(store);
    let upsert = Update { upsert: true, ..update_of(2, &doc! { "$set": &doc! { "n": 5 } }) };
    tx.update(&ns("c"), &upsert).unwrap();
    assert_eq!(increment(&mut *tx, "c", 2).unwrap().matched, 1);
    increment(&mut *tx, "c", 1).unwrap();
    let of_one = Update { filter: filter(&doc! { "n": 1 }), ..update_of(1, &doc! { "$set": &doc! { "n": 9 } }) };
    assert_eq!(tx.update(&ns("c"), &of_one).unwrap().matched, 1);
    let of_nine =
        Update { multi: true, filter: filter(&doc! { "n": 9 }), ..update_of(1, &doc! { "$set": &doc! { "n": 7 } }) };
    assert_eq!(tx.update(&ns("c"), &of_nine).unwrap().matched, 1);
    let six = espalier_store::Delete { filter: filter(&doc! { "n": 6 }), ..delete_of(2) };
    assert_eq!(tx.delete(&ns("c"), &six).unwrap().deleted, 1);
    tx.commit().unwrap();
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 7)]);
}

pub fn images_are_those_before_and_after(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let change = |want| Update { want, ..update_of(1, &doc! { "$inc": &doc! { "n": 1 } }) };
    let before = auto(store).update(&ns("c"), &change(Want::Before)).unwrap();
    assert_eq!((before.matched, before.modified, before.image), (1, 1, Some(numbered(1, 0))));
    let after = auto(store).update(&ns("c"), &change(Want::After)).unwrap();
    assert_eq!(after.image, Some(numbered(1, 2)));
    let delete = espalier_store::Delete { want_image: true, ..delete_of(1) };
    assert_eq!(auto(store).delete(&ns("c"), &delete).unwrap().image, Some(numbered(1, 2)));
}

pub fn documents_are_deleted_by_their_ids(store: &dyn Store) {
    put(store, "c", &(1..=6).map(|id| numbered(id, id)).collect::<Vec<_>>());
    let mut tx = transaction(store);
    tx.delete(&ns("c"), &delete_of(2)).unwrap();
    increment(&mut *tx, "c", 4).unwrap();
    let ids: Vec<Value<'static>> = [5, 2, 9, 4, 5, 3].iter().map(|id| Value::own(ValueRef::Int32(*id))).collect();
    let mut shown = Vec::new();
    let deleted = tx.delete_by_ids(&ns("c"), &ids, &mut |doc| {
        shown.push(DocBuf::from_raw(doc));
        Ok(int(doc, "_id") != 3)
    });
    assert_eq!((deleted.unwrap(), shown), (2, vec![numbered(5, 5), numbered(4, 5), numbered(3, 3)]));
    assert_eq!(all(&*tx, "c"), [numbered(1, 1), numbered(3, 3), numbered(6, 6)]);
    tx.commit().unwrap();
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 1), numbered(3, 3), numbered(6, 6)]);
}
