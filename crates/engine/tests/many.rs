//! Writes to many documents in one transaction go in one pass: they must do what writing each by itself does, leave every
//! index right, and be seen by what the transaction reads next.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use espalier_engine::Engine;
use espalier_store::{Begin, Delete, IndexSpec, Mode, Store, Transaction, Update, Want};
use espalier_value::{Code, DocBuf, Value, ValueRef, doc};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> i32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound) as i32
    }
}

fn transaction(engine: &Engine) -> Box<dyn Transaction> {
    engine.begin(Begin { mode: Mode::Transaction, want_changes: false, raw: false, context: context() }).unwrap()
}

/// Every kind of index: by a path, through arrays, by the number of an element, sparse, partial, unique, wildcard.
fn indexes() -> Vec<IndexSpec> {
    let partial = doc! {
        "key": &doc! { "a": 1 }, "name": "partial", "partialFilterExpression": &doc! { "b.c": &doc! { "$gt": 2 } }
    };
    let sparse = doc! { "key": &doc! { "b.c": -1, "s": 1 }, "name": "sparse", "sparse": true };
    let wildcard = doc! { "key": &doc! { "w.$**": 1 }, "name": "wildcard" };
    let mut all = vec![
        index("a", &[("a", 1)], false),
        index("b", &[("b", 1)], false),
        index("tags", &[("tags", 1), ("a", 1)], false),
        index("first", &[("tags.0", 1)], false),
        index("inner", &[("list.x", 1)], false),
        index("u", &[("u", 1)], true),
    ];
    all.extend([partial, sparse, wildcard].iter().map(|spec| IndexSpec::parse(spec.as_raw()).unwrap()));
    all
}

fn document(random: &mut Random, id: i32) -> DocBuf {
    let mut doc = doc! { "_id": id, "u": id, "a": random.below(4), "b": &doc! { "c": random.below(5), "d": 0 } };
    if random.below(2) == 0 {
        doc.append("s", random.below(3));
    }
    let tags: Vec<i32> = (0..random.below(4)).map(|_| random.below(4)).collect();
    doc.append("tags", &array(&tags));
    doc.append_array("list", |list| {
        for _ in 0..1 + random.below(2) {
            list.push(&doc! { "x": random.below(4) });
        }
    });
    doc.append("w", &doc! { "k": random.below(3) });
    doc
}

fn change(random: &mut Random) -> DocBuf {
    let n = random.below(5);
    match random.below(12) {
        0 => doc! { "$set": &doc! { "a": n } },
        1 => doc! { "$inc": &doc! { "b.c": n } },
        2 => doc! { "$set": &doc! { "b.d": n } },
        3 => doc! { "$push": &doc! { "tags": n } },
        4 => doc! { "$set": &doc! { "tags.0": n } },
        5 => doc! { "$set": &doc! { "list.0.x": n } },
        6 => doc! { "$unset": &doc! { "s": 1 } },
        7 => doc! { "$rename": &doc! { "s": "t" } },
        8 => doc! { "$set": &doc! { "w.k": n, "other": n } },
        9 => doc! { "$set": &doc! { "list.$[].x": n } },
        10 => doc! { "$inc": &doc! { "u": 100 } },
        _ => doc! { "$set": &doc! { "b": &doc! { "c": n } } },
    }
}

fn condition(random: &mut Random) -> DocBuf {
    let n = random.below(4);
    match random.below(7) {
        0 => doc! { "a": n },
        1 => doc! { "b.c": &doc! { "$gte": n } },
        2 => doc! { "tags": n },
        3 => doc! { "list.x": n },
        4 => doc! { "_id": &doc! { "$lt": random.below(40) } },
        5 => doc! { "w.k": n },
        _ => DocBuf::new(),
    }
}

fn seen(tx: &dyn Transaction, condition: &DocBuf) -> Vec<DocBuf> {
    let mut cursor = tx.find(&ns(), &sorted(condition, &doc! { "_id": 1 })).unwrap();
    let mut out = Vec::new();
    while cursor.advance().unwrap() {
        out.push(DocBuf::from_raw(cursor.doc()));
    }
    out
}

#[test]
fn all_at_once_is_each_by_itself() {
    for seed in 0..25 {
        let mut random = Random(seed);
        let documents: Vec<DocBuf> = (0..40).map(|id| document(&mut random, id)).collect();
        let engines: Vec<Engine> = (0..3).map(|_| engine()).collect();
        for engine in &engines {
            insert(engine, &documents);
            begin(engine).create_indexes(&ns(), &indexes()).unwrap();
        }
        let (mut at_once, mut each) = (transaction(&engines[0]), transaction(&engines[1]));
        for step in 0..12 {
            let (which, what, looks) = (condition(&mut random), change(&mut random), condition(&mut random));
            let context = format!("seed {seed}, step {step}: {which:?} {what:?}");
            if random.below(6) == 0 {
                let few = doc! { "_id": &doc! { "$in": &array(&[random.below(40), random.below(40)]) } };
                let all = delete(&few, true);
                let deleted = at_once.delete(&ns(), &all).unwrap().deleted;
                // An image is given document by document.
                let one_by_one = Delete { want_image: true, ..all.clone() };
                assert_eq!(deleted, each.delete(&ns(), &one_by_one).unwrap().deleted, "{context}");
                assert_eq!(deleted, begin(&engines[2]).delete(&ns(), &all).unwrap().deleted, "{context}");
            }
            let all = Update { multi: true, ..update(&which, &what) };
            let one_by_one = Update { want: Want::After, ..all.clone() };
            let counts = |done: espalier_value::Result<espalier_store::Updated>| {
                let done = done.unwrap();
                (done.matched, done.modified)
            };
            let done = counts(at_once.update(&ns(), &all));
            assert_eq!(done, counts(each.update(&ns(), &one_by_one)), "{context}");
            assert_eq!(done, counts(begin(&engines[2]).update(&ns(), &all)), "{context}");
            assert_eq!(seen(&*at_once, &looks), seen(&*each, &looks), "{context}, by {looks:?}");
        }
        at_once.commit().unwrap();
        each.commit().unwrap();
        let every = |engine: &Engine| all(engine, &sorted(&DocBuf::new(), &doc! { "_id": 1 }));
        assert_eq!(every(&engines[0]), every(&engines[1]), "seed {seed}");
        assert_eq!(every(&engines[0]), every(&engines[2]), "seed {seed}");
        engines.iter().for_each(assert_valid);
    }
}

#[test]
fn what_one_statement_writes_the_next_one_sees() {
    let engine = engine();
    insert(&engine, &(0..20).map(|id| doc! { "_id": id, "a": id % 2 }).collect::<Vec<_>>());
    begin(&engine).create_indexes(&ns(), &[index("a", &[("a", 1)], false)]).unwrap();
    let mut tx = transaction(&engine);
    let to =
        |from: i32, to: i32| Update { multi: true, ..update(&doc! { "a": from }, &doc! { "$set": &doc! { "a": to } }) };
    assert_eq!(tx.update(&ns(), &to(0, 1)).unwrap().modified, 10);
    assert_eq!(tx.update(&ns(), &to(1, 2)).unwrap().modified, 20);
    // A reader of the transaction sees what had been written when it was made.
    let reader = tx.reader();
    assert_eq!(tx.delete(&ns(), &delete(&doc! { "a": 2, "_id": &doc! { "$gte": 5 } }, true)).unwrap().deleted, 15);
    assert_eq!(seen(&*reader, &doc! { "a": 2 }).len(), 20);
    assert_eq!(seen(&*tx, &doc! { "a": 2 }).len(), 5);
    assert_eq!(tx.count(&ns(), &find(&DocBuf::new())).unwrap(), 5);
    assert_eq!(all(&engine, &find(&doc! { "a": 0 })).len(), 10, "nobody else sees it");
    tx.commit().unwrap();
    assert_eq!(ids(&engine, &find(&doc! { "a": 2 })), [0, 1, 2, 3, 4]);
    assert_valid(&engine);
}

#[test]
fn one_document_that_another_writes_refuses_them_all() {
    let engine = engine();
    insert(&engine, &(0..50).map(|id| doc! { "_id": id, "n": 0 }).collect::<Vec<_>>());
    let increment = Update { multi: true, ..update(&DocBuf::new(), &doc! { "$inc": &doc! { "n": 1 } }) };
    // Committed since the snapshot.
    let mut tx = transaction(&engine);
    seen(&*tx, &doc! { "_id": 0 });
    begin(&engine).update(&ns(), &update(&doc! { "_id": 30 }, &doc! { "$inc": &doc! { "n": 1 } })).unwrap();
    assert_eq!(tx.update(&ns(), &increment).unwrap_err().code(), Code::WriteConflict);
    tx.abort();
    // Claimed by a transaction that is still under way.
    let (mut first, mut second) = (transaction(&engine), transaction(&engine));
    first.update(&ns(), &update(&doc! { "_id": 30 }, &doc! { "$inc": &doc! { "n": 1 } })).unwrap();
    assert_eq!(second.update(&ns(), &increment).unwrap_err().code(), Code::WriteConflict);
    second.abort();
    first.commit().unwrap();
    // What the ones that gave up had claimed is free again.
    let mut tx = transaction(&engine);
    assert_eq!(tx.update(&ns(), &increment).unwrap().modified, 50);
    tx.commit().unwrap();
    assert_eq!(ids(&engine, &find(&doc! { "n": 3 })), [30]);
    assert_valid(&engine);
}

#[test]
fn an_update_that_fails_in_the_middle_says_why() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1, "n": 1 }, doc! { "_id": 2, "n": "two" }, doc! { "_id": 3, "n": 3 }]);
    let mut tx = transaction(&engine);
    let increment = Update { multi: true, ..update(&DocBuf::new(), &doc! { "$inc": &doc! { "n": 1 } }) };
    assert_eq!(tx.update(&ns(), &increment).unwrap_err().code(), Code::TypeMismatch);
    tx.abort();
    assert_eq!(ids(&engine, &find(&doc! { "n": &doc! { "$in": &array(&[1, 3]) } })), [1, 3]);
    assert_valid(&engine);
}

#[test]
fn documents_deleted_by_their_ids_are_those_that_are_wanted() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let documents: Vec<DocBuf> = (0..30).map(|id| document(&mut random, id)).collect();
        let (engine, model) = (engine(), engine());
        for engine in [&engine, &model] {
            insert(engine, &documents);
            begin(engine).create_indexes(&ns(), &indexes()).unwrap();
        }
        let (mut tx, mut slow) = (transaction(&engine), transaction(&model));
        let write = update(&doc! { "_id": random.below(30) }, &change(&mut random));
        tx.update(&ns(), &write).unwrap();
        slow.update(&ns(), &write).unwrap();
        // Some are not there, some come twice, in any order.
        let ids: Vec<Value<'static>> = (0..25).map(|_| Value::own(ValueRef::Int32(random.below(36)))).collect();
        let limit = random.below(4);
        let mut shown = Vec::new();
        let deleted = tx.delete_by_ids(&ns(), &ids, &mut |doc| {
            let wanted = matches!(doc.get("a"), Some(ValueRef::Int32(a)) if a >= limit);
            shown.push((DocBuf::from_raw(doc), wanted));
            Ok(wanted)
        });
        let (mut expected, mut gone) = (Vec::new(), 0);
        for id in &ids {
            let by_id = doc! { "_id": id.or_null() };
            let Some(there) = seen(&*slow, &by_id).pop() else { continue };
            let wanted = matches!(there.as_raw().get("a"), Some(ValueRef::Int32(a)) if a >= limit);
            if wanted {
                gone += slow.delete(&ns(), &delete(&by_id, false)).unwrap().deleted;
            }
            expected.push((there, wanted));
        }
        assert_eq!((deleted.unwrap(), shown), (gone, expected), "seed {seed}");
        assert_eq!(seen(&*tx, &DocBuf::new()), seen(&*slow, &DocBuf::new()), "seed {seed}");
        tx.commit().unwrap();
        assert_valid(&engine);
    }
}
