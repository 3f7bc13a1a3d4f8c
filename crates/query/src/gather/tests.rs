//! With helpers and without, the same comes out: random documents through random pipelines, in memory and on disk.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use espalier_value::{ArrayBuf, DocBuf, RawDoc, Result, ValueRef, doc};

use crate::context::Context;
use crate::expression::Scope;
use crate::helpers::Helpers;
use crate::stage::{Pipeline, Run};
use crate::stream::{Buffered, Parts, Stream};
use crate::testing::{MemorySpill, array, drain};

/// A thread for each task; every so often there is none, or it has to leave.
#[derive(Debug, Default)]
struct Threads {
    asked: AtomicUsize,
    helped: AtomicUsize,
}

impl Helpers for Threads {
    fn has_room(&self) -> bool {
        true
    }

    fn help(self: Arc<Self>, task: Box<dyn FnOnce() + Send>) -> bool {
        if self.asked.fetch_add(1, Ordering::Relaxed) % 5 == 4 {
            return false;
        }
        self.helped.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(task);
        true
    }

    fn is_crowded(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) % 7 == 6
    }
}

/// Documents that can be had in parts of different lengths.
struct Divided {
    docs: Vec<DocBuf>,
    next: usize,
}

impl Stream for Divided {
    fn advance(&mut self) -> Result<bool> {
        self.next += 1;
        Ok(self.next <= self.docs.len())
    }

    fn doc(&self) -> RawDoc<'_> {
        self.docs[self.next - 1].as_raw()
    }

    fn parts(&mut self) -> Option<Box<dyn Parts>> {
        let mut parts = Vec::new();
        let mut docs = std::mem::take(&mut self.docs);
        while !docs.is_empty() {
            let length = [1, 40, 7, 0, 300][parts.len() % 5].min(docs.len());
            let rest = docs.split_off(length);
            parts.push(docs);
            docs = rest;
        }
        Some(Box::new(Lists(parts.into_iter())))
    }
}

struct Lists(std::vec::IntoIter<Vec<DocBuf>>);

impl Parts for Lists {
    fn next(&mut self) -> Result<Option<Box<dyn Stream>>> {
        Ok(self.0.next().map(|docs| Box::new(Buffered::new(docs)) as Box<dyn Stream>))
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Doubles whose sums depend on the order, other numbers, strings, arrays, documents, nothing.
fn documents(random: &mut Random, count: usize) -> Vec<DocBuf> {
    (0..count)
        .map(|n| {
            let mut doc = doc! { "_id": n as i32, "k": random.below(30) as i32 };
            let size = 10f64.powi(random.below(40) as i32 - 20);
            match random.below(8) {
                0..4 => doc.append("x", (random.below(1_000_000) as f64 - 500_000.0) * size),
                4 => doc.append("x", random.below(1000) as i32),
                5 => doc.append("x", i64::MAX - random.below(1000) as i64),
                6 => doc.append("x", "text"),
                _ => &mut doc,
            };
            doc.append("s", format!("s{}", random.below(200)).as_str());
            let elements: ArrayBuf =
                (0..random.below(4)).map(|_| ValueRef::Double(random.below(5) as f64 * 0.1)).collect();
            doc.append("a", &elements);
            doc.append("d", &doc! { "e": random.below(3) as i32 });
            doc
        })
        .collect()
}

fn stage(random: &mut Random) -> String {
    match random.below(9) {
        0 => format!("{{$match: {{k: {{$lt: {}}}}}}}", random.below(35)),
        1 => format!("{{$match: {{$expr: {{$gt: [{{$add: ['$k', {}]}}, 9]}}}}}}", random.below(9)),
        2 => "{$addFields: {y: {$add: ['$k', 0.1]}}}".into(),
        3 => "{$unwind: '$a'}".into(),
        4 => "{$unwind: {path: '$a', preserveNullAndEmptyArrays: true, includeArrayIndex: 'i'}}".into(),
        5 => format!("{{$sort: {{{}: {}}}}}", random.pick(&["s", "x", "k", "a", "d.e"]), random.pick(&["1", "-1"])),
        6 => format!("{{$sort: {{s: 1, x: -1}}}}, {{$limit: {}}}", 1 + random.below(50)),
        7 => "{$project: {k: 1, x: 1, s: 1, a: 1, d: 1}}".into(),
        _ => "{$match: {}}".into(),
    }
}

fn last(random: &mut Random) -> String {
    let id = random.pick(&["'$k'", "null", "'$s'", "{k: '$k', e: '$d.e'}", "'$a'", "{$mod: ['$k', 3]}", "'$x'"]);
    let fields = [
        "sum: {$sum: '$x'}",
        "avg: {$avg: '$x'}",
        "dev: {$stdDevSamp: '$x'}",
        "min: {$min: '$x'}, max: {$max: '$x'}",
        "first: {$first: '$x'}, last: {$last: '$s'}",
        // Not evaluated once there is a first, so that it fails only where it is the first.
        "f: {$first: {$add: ['$k', '$s']}}",
        "all: {$push: '$x'}",
        "set: {$addToSet: '$k'}",
        "top: {$topN: {n: 3, sortBy: {s: 1}, output: '$_id'}}",
        "n: {$count: {}}",
        "m: {$mergeObjects: '$d'}",
        "bad: {$sum: {$divide: [1, {$subtract: ['$k', 7]}]}}",
    ];
    let mut chosen = vec![format!("_id: {id}")];
    for field in fields {
        if random.below(if field.starts_with("bad") || field.starts_with("f:") { 12 } else { 3 }) == 0 {
            chosen.push(field.to_string());
        }
    }
    match random.below(8) {
        0 => "{$bucketAuto: {groupBy: '$k', buckets: 4, output: {sum: {$sum: '$x'}, all: {$push: '$_id'}}}}".into(),
        1 => "{$setWindowFields: {partitionBy: {$mod: ['$k', 4]}, sortBy: {s: 1}, output: {sum: {$sum: '$x', window: {documents: [-3, 0]}}}}}".into(),
        2 => "{$sort: {x: 1, s: -1}}".into(),
        3 => "{$count: 'n'}".into(),
        _ => format!("{{$group: {{{}}}}}", chosen.join(", ")),
    }
}

fn run(
    docs: Vec<DocBuf>,
    pipeline: &str,
    helpers: Option<Arc<dyn Helpers>>,
    memory: Option<usize>,
) -> Result<ArrayBuf> {
    let mut context = Context::new(0, 1);
    context.helpers = helpers;
    let mut run = Run::new(Arc::new(context));
    if let Some(bytes) = memory {
        run.limits.stage_memory_bytes_max = bytes;
        run.spill = Some(Arc::new(MemorySpill::default()));
    }
    let pipeline = Pipeline::parse(array(pipeline).as_raw(), &Scope::default(), &run.context)?;
    drain(pipeline.run_all(Box::new(Divided { docs, next: 0 }), &run)?)
}

#[test]
fn helped_as_alone() {
    let threads = Arc::new(Threads::default());
    for seed in 0..100 {
        let mut random = Random(seed);
        let count = 200 + random.below(1200) as usize;
        let docs = documents(&mut random, count);
        let mut stages: Vec<String> = (0..random.below(3)).map(|_| stage(&mut random)).collect();
        stages.push(last(&mut random));
        let pipeline = format!("[{}]", stages.join(", "));
        let memory = (random.below(3) == 0).then_some(20_000);
        let alone = run(docs.clone(), &pipeline, None, memory);
        let helped = run(docs, &pipeline, Some(threads.clone()), memory);
        match (alone, helped) {
            (Ok(alone), Ok(helped)) => {
                assert!(alone.as_raw() == helped.as_raw(), "seed {seed}: {pipeline}");
            }
            (Err(alone), Err(helped)) => assert_eq!(alone.code(), helped.code(), "seed {seed}: {pipeline}"),
            (alone, helped) => panic!("seed {seed}: {pipeline}: {:?} {:?}", alone.err(), helped.err()),
        }
    }
    assert!(threads.helped.load(Ordering::Relaxed) > 50);
}

#[test]
fn documents_come_in_order_and_an_end_frees_the_helpers() {
    let threads = Arc::new(Threads::default());
    let docs = documents(&mut Random(7), 5_000);
    let mut divided = Divided { docs: docs.clone(), next: 0 };
    let parts = divided.parts().unwrap();
    let mut gathered = super::Gathered::new(parts, threads.clone(), Some(vec!["_id".into(), "s".into()]));
    for doc in &docs {
        assert!(gathered.advance().unwrap());
        let doc = doc.as_raw();
        assert_eq!(gathered.doc(), doc! { "_id": doc.get("_id").unwrap(), "s": doc.get("s").unwrap() }.as_raw());
    }
    assert!(!gathered.advance().unwrap() && !gathered.advance().unwrap());

    // One that is given up in the middle.
    let mut divided = Divided { docs, next: 0 };
    let mut gathered = super::Gathered::new(divided.parts().unwrap(), threads, None);
    assert!(gathered.advance().unwrap());
    drop(gathered);
}

/// A part that panics ends the whole with an error and nobody waits for it.
#[test]
fn a_panic_is_an_error() {
    struct Broken;
    impl Stream for Broken {
        fn advance(&mut self) -> Result<bool> {
            panic!("a part that fails, for the test")
        }
        fn doc(&self) -> RawDoc<'_> {
            RawDoc::EMPTY
        }
    }
    struct Once(usize);
    impl Parts for Once {
        fn next(&mut self) -> Result<Option<Box<dyn Stream>>> {
            self.0 += 1;
            let docs = || documents(&mut Random(1), 3);
            Ok((self.0 < 20).then(|| match self.0 {
                9 => Box::new(Broken) as Box<dyn Stream>,
                _ => Box::new(Buffered::new(docs())),
            }))
        }
    }
    let mut gathered = super::Gathered::new(Box::new(Once(0)), Arc::new(Threads::default()), None);
    for _ in 0..24 {
        assert!(gathered.advance().unwrap());
    }
    assert!(gathered.advance().is_err());
}
