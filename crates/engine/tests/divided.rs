//! A scan that several threads read gives what one that reads alone gives: the same documents in the same order, the same
//! counts of what was examined, at the same snapshot.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_query::stage::{Pipeline, Run};
use espalier_query::{Context, Helpers};
use espalier_store::{Begin, Find, Hint, Mode, Store, Transaction};
use espalier_value::{ArrayBuf, Code, DocBuf, ValueRef, doc};

#[derive(Debug, Default)]
struct Threads(AtomicUsize);

impl Helpers for Threads {
    fn has_room(&self) -> bool {
        true
    }
    fn help(self: Arc<Self>, task: Box<dyn FnOnce() + Send>) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(task);
        true
    }
    fn is_crowded(&self) -> bool {
        false
    }
}

fn helped() -> (Arc<Context>, Arc<Threads>) {
    let threads = Arc::new(Threads::default());
    let mut context = Context::new(0, 1);
    context.helpers = Some(threads.clone());
    (Arc::new(context), threads)
}

/// 30,000 documents with gaps between their record ids, large enough that there are many parts.
fn fill(engine: &espalier_engine::Engine) {
    for batch in 0..40 {
        let number = |n: i32| batch * 1000 + n;
        let document = |n: i32| {
            let value = f64::from(number(n).wrapping_mul(7919) % 10_007) * 0.1;
            doc! { "_id": number(n), "k": number(n) % 13, "x": value, "s": format!("text {}", number(n) % 97).as_str() }
        };
        insert(engine, &(0..1000).map(document).collect::<Vec<_>>());
    }
    for batch in [3, 4, 5, 20, 21, 22, 23, 30, 31, 32] {
        let range = doc! { "_id": &doc! { "$gte": batch * 1000, "$lt": batch * 1000 + 1000 } };
        assert_eq!(begin(engine).delete(&ns(), &delete(&range, true)).unwrap().deleted, 1000);
    }
}

fn read(txn: &dyn Transaction, find: &Find) -> (ArrayBuf, u64) {
    let mut cursor = txn.find(&ns(), find).unwrap();
    let mut out = ArrayBuf::new();
    while cursor.advance().unwrap() {
        out.push(ValueRef::Document(cursor.doc()));
    }
    (out, cursor.docs_examined())
}

#[test]
fn finds_are_the_same() {
    let engine = engine();
    fill(&engine);
    // A transaction with writes of its own, which lie over the snapshot.
    let mut txn =
        engine.begin(Begin { mode: Mode::Transaction, want_changes: false, raw: false, context: context() }).unwrap();
    txn.delete(&ns(), &delete(&doc! { "_id": 12_345 }, false)).unwrap();
    txn.update(&ns(), &update(&doc! { "_id": 17_000 }, &doc! { "$set": &doc! { "k": 5 } })).unwrap();
    let filter = doc! { "k": &doc! { "$in": &array(&[1, 5, 12]) } };
    let by = |spec: &DocBuf| Sort::parse(spec.as_raw(), &Scope::default()).unwrap().map(Arc::new);
    let mut finds = vec![find(&filter), find(&DocBuf::new())];
    for (sort, limit) in [(doc! { "x": -1 }, None), (doc! { "s": 1, "x": 1 }, Some(30)), (doc! { "k": 1 }, Some(9000))]
    {
        let mut sorted = find(&filter);
        (sorted.sort, sorted.limit, sorted.skip) = (by(&sort), limit, 3);
        finds.push(sorted);
    }
    let mut reverse = find(&filter);
    reverse.hint = Some(Hint::Natural { reverse: true });
    finds.push(reverse);
    for (at, alone) in finds.into_iter().enumerate() {
        let (context, threads) = helped();
        let together = Find { context: context.clone(), ..alone.clone() };
        let (expected, found) = (read(&*txn, &alone), read(&*txn, &together));
        assert!(expected.0.as_raw() == found.0.as_raw(), "find {at}");
        assert_eq!(expected.1, found.1, "find {at}");
        assert_eq!(context.work.total(), alone.context.work.total(), "find {at}");
        // Without a filter there is nothing to share.
        assert_eq!(threads.0.load(Ordering::Relaxed) > 0, at != 1, "find {at}");
    }
}

#[test]
fn groups_are_the_same_and_can_be_interrupted() {
    let engine = engine();
    fill(&engine);
    let stage =
        doc! { "$group": &doc! { "_id": "$k", "sum": &doc! { "$sum": "$x" }, "all": &doc! { "$push": "$_id" } } };
    let stages: ArrayBuf = [ValueRef::Document(stage.as_raw())].into_iter().collect();
    let group = |context: &Arc<Context>| {
        let pipeline = Pipeline::parse(stages.as_raw(), &Scope::default(), context).unwrap();
        let find = Find { context: context.clone(), ..find(&DocBuf::new()) };
        let cursor = begin(&engine).find(&ns(), &find).unwrap();
        let mut stream = pipeline.run(cursor, &Run::new(context.clone()))?;
        let mut out = ArrayBuf::new();
        while stream.advance()? {
            out.push(ValueRef::Document(stream.doc()));
        }
        Ok::<_, espalier_value::Error>(out)
    };
    let alone = context();
    let (together, threads) = helped();
    assert!(group(&alone).unwrap().as_raw() == group(&together).unwrap().as_raw());
    assert!(threads.0.load(Ordering::Relaxed) > 0);
    assert_eq!(together.work.total(), (0, 30_000));
    together.interrupt.raise(Code::MaxTimeMSExpired);
    assert_eq!(group(&together).unwrap_err().code(), Code::MaxTimeMSExpired);
}
