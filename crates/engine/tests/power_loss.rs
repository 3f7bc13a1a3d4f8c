//! Power cuts under writers, seen through the engine: after each, every collection holds what some prefix of its
//! writer's operations made, no shorter than what was waited for, with whole operations, right indexes and right counts.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

use common::{begin, context, delete, find, update};
use espalier_engine::{Engine, EngineOptions};
use espalier_kv::{Fault, FaultyDisk, MemDisk, Options, Rng};
use espalier_store::{CommitToken, Hint, IndexSpec, Insert, Namespace, Store};
use espalier_value::{Code, DocBuf, RawDoc, Result, ValueRef, doc};

const WRITERS: u64 = 3;
const IDS: u64 = 60;
const SPECS: [&str; 4] = ["tags_1_n_-1", "k_1", "partial", "all"];

/// What a writer's collection holds: `n` by `_id`, and its indexes. A collection that is missing holds nothing.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    docs: BTreeMap<i32, i32>,
    indexes: BTreeSet<&'static str>,
    renamed: bool,
}

impl State {
    fn is_missing(&self) -> bool {
        self.docs.is_empty() && self.indexes.is_empty()
    }
}

fn spec(name: &str) -> IndexSpec {
    let listed = match name {
        "tags_1_n_-1" => doc! { "key": &doc! { "tags": 1, "n": -1 }, "name": name },
        "k_1" => doc! { "key": &doc! { "k": 1 }, "name": name, "unique": true, "sparse": true },
        "partial" => {
            let wanted = doc! { "n": &doc! { "$gt": 20 } };
            doc! { "key": &doc! { "mirror": 1 }, "name": name, "partialFilterExpression": &wanted }
        }
        _ => doc! { "key": &doc! { "$**": 1 }, "name": name },
    };
    IndexSpec::parse(listed.as_raw()).unwrap()
}

/// `tags` is an array for even numbers only, so that an index becomes multikey at some point.
fn document(id: i32, n: i32, fill: usize) -> DocBuf {
    let mut doc = doc! { "_id": id, "n": n, "mirror": n, "k": id, "fill": "x".repeat(fill).as_str() };
    if n % 2 == 0 {
        doc.append("tags", &common::array(&[n, n % 3]));
    } else {
        doc.append("tags", n);
    }
    doc
}

/// One client on a collection of its own, and every state that collection was in.
struct Writer {
    number: u64,
    history: Vec<State>,
    /// The position in the history that was last waited for.
    durable: usize,
    rng: Rng,
}

fn collection(number: u64, renamed: bool) -> Namespace {
    Namespace::new(if renamed { "other" } else { "test" }, &format!("w{number}"))
}

impl Writer {
    fn new(number: u64, seed: u64) -> Writer {
        Writer { number, history: vec![State::default()], durable: 0, rng: Rng::new(seed ^ (number << 40)) }
    }

    /// Writes until the disk fails.
    fn run(&mut self, engine: &Engine) {
        for _ in 0..400 {
            let mut next = self.history.last().unwrap().clone();
            let done = self.step(engine, &mut next);
            // Also what failed may be on disk.
            self.history.push(next);
            let Ok(token) = done else { return };
            if self.rng.below(3) == 0 {
                if engine.wait_durable(token).is_err() {
                    return;
                }
                self.durable = self.history.len() - 1;
            }
        }
    }

    fn step(&mut self, engine: &Engine, state: &mut State) -> Result<CommitToken> {
        let ns = collection(self.number, state.renamed);
        let mut txn = begin(engine);
        let (id, n) = (self.rng.below(IDS) as i32, self.rng.below(40) as i32);
        match self.rng.below(100) {
            0..35 => {
                let fill = self.rng.below(200) as usize;
                let wanted = 1 + self.rng.below(8) as i32;
                let ids: Vec<i32> = (id..id + wanted).filter(|id| !state.docs.contains_key(id)).collect();
                let docs: Vec<DocBuf> = ids.iter().map(|id| document(*id, n, fill)).collect();
                let raw: Vec<RawDoc<'_>> = docs.iter().map(DocBuf::as_raw).collect();
                state.docs.extend(ids.iter().map(|id| (*id, n)));
                let how = Insert { ordered: true, bypass_validation: false, statements: None, context: context() };
                let done = txn.insert(&ns, &raw, &how)?;
                assert_eq!((done.inserted, done.errors.len()), (ids.len() as u64, 0));
            }
            35..70 => {
                let before = state.docs.get(&id).copied();
                let set = doc! { "$inc": &doc! { "n": 1, "mirror": 1 }, "$setOnInsert": &doc! { "k": id } };
                let mut change = update(&doc! { "_id": id }, &set);
                change.upsert = true;
                state.docs.insert(id, before.unwrap_or(0) + 1);
                let done = txn.update(&ns, &change)?;
                assert_eq!((done.modified, done.upserted_id.is_some()), (before.is_some().into(), before.is_none()));
            }
            70..82 => {
                let there = state.docs.remove(&id).is_some();
                assert_eq!(txn.delete(&ns, &delete(&doc! { "_id": id }, false))?.deleted, there.into());
            }
            82..90 => {
                let name = SPECS[self.rng.below(4) as usize];
                if state.indexes.remove(name) {
                    txn.drop_index(&ns, name)?;
                } else {
                    state.indexes.insert(name);
                    txn.create_indexes(&ns, &[spec(name)])?;
                }
            }
            90..93 => {
                *state = State { renamed: state.renamed, ..State::default() };
                txn.drop_collection(&ns)?;
            }
            93..95 if !state.is_missing() => {
                state.renamed = !state.renamed;
                txn.rename(&ns, &collection(self.number, state.renamed), true)?;
            }
            _ => engine.flush()?,
        }
        txn.commit()
    }

    /// What is stored is one of the states since the last that was waited for.
    fn check(&mut self, engine: &Engine, what: &str) {
        let mut found = [stored(engine, self.number, false), stored(engine, self.number, true)];
        let allowed = &self.history[self.durable..];
        let at = allowed.iter().rposition(|state| {
            let (own, other) = (&found[usize::from(state.renamed)], &found[usize::from(!state.renamed)]);
            other.is_missing() && own.docs == state.docs && own.indexes == state.indexes
        });
        let Some(at) = at else {
            let ends: Vec<String> = allowed.iter().map(|state| format!("{state:?}")).collect();
            panic!("{what}: writer {} has\n{found:?}, which is none of\n{}", self.number, ends.join("\n"));
        };
        let renamed = allowed[at].renamed;
        self.history = vec![std::mem::take(&mut found[usize::from(renamed)])];
        self.durable = 0;
    }
}

/// What a collection holds, checked in itself.
fn stored(engine: &Engine, number: u64, renamed: bool) -> State {
    let ns = collection(number, renamed);
    let mut state = State { renamed, ..State::default() };
    if begin(engine).collection(&ns).unwrap().is_none() {
        return state;
    }
    let report = begin(engine).validate(&ns, true, false).unwrap();
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(true))), "{ns}: {report:?}");
    let mut everything = find(&DocBuf::new());
    everything.hint = Some(Hint::Natural { reverse: false });
    let mut cursor = begin(engine).find(&ns, &everything).unwrap();
    while cursor.advance().unwrap() {
        let number = |name: &str| match cursor.doc().get(name) {
            Some(ValueRef::Int32(n)) => n,
            other => panic!("{name} is {other:?}"),
        };
        assert_eq!(number("n"), number("mirror"), "half applied");
        assert!(state.docs.insert(number("_id"), number("n")).is_none(), "twice there");
    }
    for index in begin(engine).indexes(&ns).unwrap() {
        assert!(!index.building, "a build that did not end is undone");
        state.indexes.extend(SPECS.iter().filter(|name| **name == index.spec.name));
    }
    // Through whatever index the plan takes, with bounds that an index may only join if it is not multikey.
    let tags = doc! { "tags": &doc! { "$gt": 1, "$lt": 6 } };
    let mut by_scan = find(&tags);
    by_scan.hint = Some(Hint::Natural { reverse: false });
    assert_eq!(begin(engine).count(&ns, &find(&tags)).unwrap(), begin(engine).count(&ns, &by_scan).unwrap());
    state
}

/// Clients that compete for keys of one unique index.
fn compete(engine: &Engine, number: u64, seed: u64) {
    let ns = Namespace::new("test", "shared");
    let mut rng = Rng::new(seed ^ number);
    for n in 0..400u64 {
        let id = (number << 32 | n) as i64;
        let doc = doc! { "_id": id, "key": rng.below(30) as i64, "tags": &common::array(&[1, n as i32]) };
        let how = Insert { ordered: true, bypass_validation: false, statements: None, context: context() };
        let mut txn = begin(engine);
        let done = match rng.below(3) {
            0 => txn.delete(&ns, &delete(&doc! { "key": rng.below(30) as i64 }, false)).map(drop),
            _ => txn.insert(&ns, &[doc.as_raw()], &how).map(|done| {
                assert!(done.errors.iter().all(|(_, error)| error.code() == Code::DuplicateKey), "{done:?}");
            }),
        };
        let Ok(token) = done.and_then(|()| txn.commit()) else { return };
        if rng.below(4) == 0 && engine.wait_durable(token).is_err() {
            return;
        }
    }
}

fn check_shared(engine: &Engine) {
    let ns = Namespace::new("test", "shared");
    let report = begin(engine).validate(&ns, true, false).unwrap();
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(true))), "{report:?}");
    let keys = begin(engine).distinct(&ns, "key", &find(&DocBuf::new())).unwrap();
    assert_eq!(keys.len() as u64, begin(engine).count(&ns, &find(&DocBuf::new())).unwrap(), "a key is there twice");
}

fn open(disk: Arc<dyn espalier_kv::Disk>) -> Result<Engine> {
    let options = Options { memtable_bytes: 16 << 10, ..Options::tiny() };
    Engine::open_on(disk, options, EngineOptions::default()).map(|(engine, _)| engine)
}

#[test]
fn after_a_power_cut_every_collection_is_a_prefix_of_its_writes() {
    let (mut kept, mut failed_opens) = (0, 0);
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let mut disk = Arc::new(MemDisk::new());
        let mut writers: Vec<Writer> = (0..WRITERS).map(|number| Writer::new(number, seed)).collect();
        {
            let engine = open(disk.clone()).unwrap();
            let mut txn = begin(&engine);
            let unique = doc! { "key": &doc! { "key": 1 }, "name": "key_1", "unique": true };
            let tags = doc! { "key": &doc! { "tags": 1 }, "name": "tags_1" };
            let specs = [&unique, &tags].map(|spec| IndexSpec::parse(spec.as_raw()).unwrap());
            txn.create_indexes(&Namespace::new("test", "shared"), &specs).unwrap();
            engine.wait_durable(txn.commit().unwrap()).unwrap();
            engine.close().unwrap();
        }
        for round in 0..4 {
            // Now and then early enough to hit the opening itself.
            let span = if rng.below(5) == 0 { 8 } else { 500 };
            let faulty = FaultyDisk::new(disk.clone(), Fault::Forever, rng.below(span));
            match open(Arc::new(faulty)) {
                Ok(engine) => thread::scope(|scope| {
                    for writer in &mut writers {
                        scope.spawn(|| writer.run(&engine));
                    }
                    for number in 0..2 {
                        let engine = &engine;
                        scope.spawn(move || compete(engine, seed << 16 | round << 8 | number, seed));
                    }
                }),
                Err(_) => failed_opens += 1,
            }
            disk = Arc::new(disk.crash(rng.next_u64()));
            let engine = open(disk.clone()).unwrap();
            for writer in &mut writers {
                writer.check(&engine, &format!("seed {seed} round {round}"));
                kept += writer.history[0].docs.len();
            }
            check_shared(&engine);
            // What was recovered is durable from now on, and the next round starts from it.
            engine.close().unwrap();
        }
    }
    assert!(kept > 500, "{kept} documents survived in all");
    assert!(failed_opens > 0, "no cut came while opening");
}
