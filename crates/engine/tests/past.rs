//! Reads at a time that has been: every state of a collection is remembered by its time, and reads at random times, by
//! scan, by `_id` and by an index that comes and goes, are compared with it, through restarts, flushes and power cuts.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::*;
use espalier_engine::{Engine, EngineOptions};
use espalier_kv::{MemDisk, Options, Rng};
use espalier_store::*;
use espalier_value::{Code, DocBuf, RawDoc, Result, ValueRef, doc};

type Model = BTreeMap<i32, i32>;

fn at(engine: &Engine, mode: Mode, time: u64) -> Result<Box<dyn Transaction>> {
    let begin = Begin { mode, want_changes: false, raw: false, context: context() };
    engine.begin_at(begin, Some(time)).map(|(transaction, _)| transaction)
}

fn read(transaction: &dyn Transaction, find: &Find) -> Result<Model> {
    let mut cursor = transaction.find(&ns(), find)?;
    let mut found = Model::new();
    while cursor.advance()? {
        let number = |name: &str| match cursor.doc().get(name) {
            Some(ValueRef::Int32(n)) => n,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(found.insert(number("_id"), number("n")), None, "a document twice");
    }
    Ok(found)
}

struct World {
    rng: Rng,
    disk: Arc<MemDisk>,
    engine: Engine,
    states: Vec<(u64, Model)>,
    has_index: bool,
}

fn kv_options() -> Options {
    Options { memtable_bytes: 32 << 10, background: true, ..Options::tiny() }
}

fn open(disk: &Arc<MemDisk>) -> Engine {
    let kv = Options { past_bytes: u64::MAX, past_age: Duration::from_secs(3600), ..kv_options() };
    Engine::open_on(disk.clone(), kv, EngineOptions::default()).unwrap().0
}

impl World {
    fn new(seed: u64) -> World {
        let disk = Arc::new(MemDisk::new());
        let engine = open(&disk);
        begin(&engine).create(&ns(), &CollectionOptions::default()).unwrap();
        let states = vec![(engine.time(), Model::new())];
        World { rng: Rng::new(seed), disk, engine, states, has_index: false }
    }

    fn now(&self) -> Model {
        self.states.last().unwrap().1.clone()
    }

    fn write(&mut self) {
        let mut model = self.now();
        let (id, n) = (self.rng.below(40) as i32, self.rng.below(10) as i32);
        match self.rng.below(3) {
            0 => {
                begin(&self.engine).delete(&ns(), &delete(&doc! { "_id": id }, false)).unwrap();
                model.remove(&id);
            }
            _ if model.contains_key(&id) => {
                let change = update(&doc! { "_id": id }, &doc! { "$set": &doc! { "n": n } });
                begin(&self.engine).update(&ns(), &change).unwrap();
                model.insert(id, n);
            }
            _ => {
                insert(&self.engine, &[doc! { "_id": id, "n": n, "fill": "x".repeat(200).as_str() }]);
                model.insert(id, n);
            }
        }
        self.note(model);
    }

    /// Remembers the state, unless nothing has changed.
    fn note(&mut self, model: Model) {
        let time = self.engine.time();
        if self.states.last().unwrap().0 < time {
            self.states.push((time, model));
        }
    }

    fn change_index(&mut self) {
        let mut transaction = begin(&self.engine);
        match self.has_index {
            true => transaction.drop_index(&ns(), "n_1").unwrap(),
            false => drop(transaction.create_indexes(&ns(), &[index("n_1", &[("n", 1)], false)]).unwrap()),
        }
        self.has_index = !self.has_index;
        let model = self.now();
        self.note(model);
    }

    fn reopen(&mut self) {
        if self.rng.below(2) == 0 {
            self.engine.close().unwrap();
        } else {
            self.engine.wait_durable(CommitToken::default()).unwrap();
            self.disk = Arc::new(self.disk.crash(self.rng.next_u64()));
        }
        self.engine = open(&self.disk);
    }

    fn look(&mut self) {
        let which = self.rng.below(self.states.len() as u64) as usize;
        let (mut time, model) = self.states[which].clone();
        if let Some((next, _)) = self.states.get(which + 1) {
            time += self.rng.below(next - time);
        }
        let transaction = at(&self.engine, Mode::Auto, time).unwrap();
        assert_eq!(read(&*transaction, &find(&doc! {})).unwrap(), model);
        let id = self.rng.below(40) as i32;
        let expected: Model = model.get(&id).map(|n| (id, *n)).into_iter().collect();
        assert_eq!(read(&*transaction, &find(&doc! { "_id": id })).unwrap(), expected);
        // By the index, if it was there then and is still.
        let n = self.rng.below(10) as i32;
        let expected: Model = model.iter().filter(|(_, value)| **value >= n).map(|(k, v)| (*k, *v)).collect();
        let wanted = doc! { "n": &doc! { "$gte": n } };
        assert_eq!(read(&*transaction, &find(&wanted)).unwrap(), expected);
        assert_eq!(transaction.count(&ns(), &find(&doc! {})).unwrap(), model.len() as u64);
    }

    fn step(&mut self) {
        match self.rng.below(200) {
            0 => self.reopen(),
            1..4 => self.change_index(),
            4..8 => self.engine.flush().unwrap(),
            8..50 => self.look(),
            _ => self.write(),
        }
    }
}

#[test]
fn every_time_shows_what_was_there() {
    for seed in 0..6 {
        let mut world = World::new(seed);
        (0..1200).for_each(|_| world.step());
        assert_valid(&world.engine);
    }
}

fn code<T>(result: Result<T>) -> Code {
    match result {
        Ok(_) => panic!("not refused"),
        Err(error) => error.code(),
    }
}

#[test]
fn a_collection_that_is_another_one_is_not_read_as_it_was() {
    let engine = engine();
    let other = Namespace::new("test", "other");
    let start = engine.time();
    insert(&engine, &[doc! { "_id": 1, "n": 1 }]);
    let there = engine.time();
    let count = |time: u64| at(&engine, Mode::Auto, time)?.count(&ns(), &find(&doc! {}));
    // It came later.
    assert_eq!(code(count(start)), Code::SnapshotUnavailable);
    assert_eq!(count(there).unwrap(), 1);
    begin(&engine).rename(&ns(), &other, false).unwrap();
    // It went away, and another name has it.
    assert_eq!(code(count(there)), Code::SnapshotUnavailable);
    let renamed = at(&engine, Mode::Auto, there).unwrap().count(&other, &find(&doc! {}));
    assert_eq!(code(renamed), Code::SnapshotUnavailable);
    insert(&engine, &[doc! { "_id": 2, "n": 2 }]);
    // It is another one.
    assert_eq!(code(count(there)), Code::SnapshotUnavailable);
    assert_eq!(count(engine.time()).unwrap(), 1);
    begin(&engine).drop_collection(&ns()).unwrap();
    assert_eq!(count(engine.time()).unwrap(), 0);
}

#[test]
fn a_transaction_on_the_past_conflicts_with_what_came_after() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1, "n": 1 }, doc! { "_id": 2, "n": 2 }]);
    let time = engine.time();
    let add = |transaction: &mut dyn Transaction, id: i32| {
        let change = update(&doc! { "_id": id }, &doc! { "$inc": &doc! { "n": 1 } });
        transaction.update(&ns(), &change).map(|updated| updated.modified)
    };
    add(&mut *begin(&engine), 1).unwrap();
    engine.flush().unwrap();
    let mut first = at(&engine, Mode::Transaction, time).unwrap();
    assert_eq!(read(&*first, &find(&doc! {})).unwrap(), Model::from([(1, 1), (2, 2)]));
    assert_eq!(code(add(&mut *first, 1)), Code::WriteConflict);
    let mut second = at(&engine, Mode::Transaction, time).unwrap();
    assert_eq!(add(&mut *second, 2).unwrap(), 1);
    second.commit().unwrap();
    assert_eq!(read(&*begin(&engine), &find(&doc! {})).unwrap(), Model::from([(1, 2), (2, 3)]));
}

#[test]
fn a_transaction_on_the_past_does_not_write_around_an_index_that_came_after() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1, "n": 1 }]);
    let time = engine.time();
    begin(&engine).create_indexes(&ns(), &[index("n_1", &[("n", 1)], true)]).unwrap();
    let mut transaction = at(&engine, Mode::Transaction, time).unwrap();
    let how = Insert { ordered: true, bypass_validation: false, statements: None, context: context() };
    let docs: [DocBuf; 1] = [doc! { "_id": 2, "n": 1 }];
    let raw: Vec<RawDoc<'_>> = docs.iter().map(DocBuf::as_raw).collect();
    let written = transaction.insert(&ns(), &raw, &how);
    assert_eq!(code(written.and_then(|_| transaction.commit())), Code::WriteConflict);
    assert_valid(&engine);
}
