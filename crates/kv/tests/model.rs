//! Random operations from seeds, compared with a plain sorted map: puts, deletes, dropped
//! trees, snapshots kept alive, scans both ways with bounds and seeks, flushes, compactions and
//! reopenings, with everything so small that all levels take part.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use espalier_kv::{Batch, Compression, Direction, Kv, MemDisk, Options, Rng, Snapshot};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const TREES: u64 = 6;

struct World {
    rng: Rng,
    disk: Arc<MemDisk>,
    options: Options,
    kv: Kv,
    model: Model,
    /// Tree ids are never used again: a dropped one is replaced by the next.
    trees: Vec<u64>,
    next_tree: u64,
    next_record: u64,
    kept: Vec<(Snapshot, Model)>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let options = Options {
            background: rng.below(2) == 0,
            compression: match rng.below(2) {
                0 => Compression::None,
                _ => Compression::Lz4,
            },
            ..Options::tiny()
        };
        let disk = Arc::new(MemDisk::new());
        let (kv, recovered) = Kv::open(disk.clone(), options.clone()).unwrap();
        assert!(recovered.is_new);
        World {
            rng,
            disk,
            options,
            kv,
            model: Model::new(),
            trees: (1..=TREES).collect(),
            next_tree: TREES + 1,
            next_record: 0,
            kept: Vec::new(),
        }
    }

    fn tree(&mut self) -> u64 {
        let at = self.rng.below(self.trees.len() as u64) as usize;
        self.trees[at]
    }

    fn key(&mut self) -> Vec<u8> {
        let tree = self.tree();
        let mut key = tree.to_be_bytes().to_vec();
        match self.rng.below(20) {
            // Keys that are prefixes of others, empty ones, and long ones.
            0 => {}
            1 => key.extend(vec![b'x'; self.rng.below(600) as usize]),
            2 => return vec![tree as u8; self.rng.below(8) as usize],
            _ => key.extend(format!("{:03}", self.rng.below(300)).as_bytes()),
        }
        key
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.rng.below(30) {
            0 => self.rng.below(3000),
            1 => 0,
            _ => self.rng.below(40),
        };
        let byte = self.rng.next_u64() as u8;
        vec![byte; len as usize]
    }

    fn write(&mut self) {
        let mut batch = Batch::new();
        for _ in 0..1 + self.rng.below(8) {
            if self.rng.below(4) == 0 {
                let key = self.key();
                batch.delete(&key);
                self.model.remove(&key);
            } else if self.rng.below(3) == 0 {
                // Fresh record ids, appended to one tree.
                let tree = self.trees[0];
                let mut key = tree.to_be_bytes().to_vec();
                key.push(b'r');
                key.extend(self.next_record.to_be_bytes());
                self.next_record += 1;
                let value = self.value();
                batch.put_new(&key, &value);
                self.model.insert(key, value);
            } else {
                let (key, value) = (self.key(), self.value());
                batch.put(&key, &value);
                self.model.insert(key, value);
            }
        }
        let snapshot = self.kv.snapshot();
        let read_at = (self.rng.below(2) == 0).then_some(&snapshot);
        let commit = self.kv.commit(batch, read_at).unwrap();
        if self.rng.below(10) == 0 {
            self.kv.wait_durable(&commit).unwrap();
        }
    }

    fn drop_tree(&mut self) {
        let at = self.rng.below(self.trees.len() as u64) as usize;
        let tree = std::mem::replace(&mut self.trees[at], self.next_tree);
        self.next_tree += 1;
        self.kv.drop_tree(tree).unwrap();
        self.model.retain(|key, _| !key.starts_with(&tree.to_be_bytes()));
    }

    fn check_gets(&mut self, snapshot: &Snapshot, model: &Model) {
        self.check_lookups(snapshot, model);
        for _ in 0..10 {
            let key = self.key();
            let found = snapshot.get(&key).unwrap();
            assert_eq!(found.as_deref(), model.get(&key).map(|v| &v[..]), "{key:?}");
        }
    }

    /// Many keys of one tree, mostly ascending, some of them not there.
    fn check_lookups(&mut self, snapshot: &Snapshot, model: &Model) {
        let tree = self.tree();
        let (lower, upper) = (tree.to_be_bytes(), (tree + 1).to_be_bytes());
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for (key, _) in model.range(lower.to_vec()..upper.to_vec()) {
            if self.rng.below(3) > 0 {
                keys.push(key.clone());
            }
        }
        for _ in 0..40 {
            let mut key = lower.to_vec();
            key.extend(format!("{:03}", self.rng.below(300)).as_bytes());
            keys.push(key);
        }
        keys.sort();
        for _ in 0..self.rng.below(20) {
            let (a, b) = (self.rng.below(keys.len() as u64) as usize, self.rng.below(keys.len() as u64) as usize);
            keys.swap(a, b);
        }
        let mut lookup = snapshot.lookup(&lower, &upper);
        for key in keys {
            let found = lookup.get(&key).unwrap();
            assert_eq!(found, model.get(&key).map(|v| &v[..]), "{key:?}");
            assert_eq!(lookup.value(), model.get(&key).map(|v| &v[..]), "{key:?}");
        }
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.rng.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(self.key()),
            _ => Bound::Included(self.key()),
        }
    }

    fn check_scan(&mut self, snapshot: &Snapshot, model: &Model) {
        let (lower, upper) = (self.bound(), self.bound());
        let within = |key: &Vec<u8>| {
            let above = match &lower {
                Bound::Included(bound) => key >= bound,
                Bound::Excluded(bound) => key > bound,
                Bound::Unbounded => true,
            };
            let below = match &upper {
                Bound::Included(bound) => key <= bound,
                Bound::Excluded(bound) => key < bound,
                Bound::Unbounded => true,
            };
            above && below
        };
        let mut expected: Vec<_> = model.iter().filter(|(key, _)| within(key)).collect();
        let direction = match self.rng.below(2) {
            0 => Direction::Forward,
            _ => {
                expected.reverse();
                Direction::Reverse
            }
        };
        let slice = |bound: &Bound<Vec<u8>>| bound.clone();
        let (low, high) = (slice(&lower), slice(&upper));
        let mut scan = snapshot.scan(low.as_ref().map(|b| &b[..]), high.as_ref().map(|b| &b[..]), direction).unwrap();
        let mut found = 0;
        while scan.next().unwrap() {
            let (key, value) = expected[found];
            assert_eq!(scan.key(), key, "{direction:?} {lower:?} {upper:?}");
            assert_eq!(scan.value(), value);
            assert_eq!(&*scan.value_bytes(), &value[..]);
            found += 1;
        }
        assert_eq!(found, expected.len(), "{direction:?} {lower:?} {upper:?}");
        for _ in 0..4 {
            let target = self.key();
            let rest: Vec<_> = expected
                .iter()
                .filter(|(key, _)| match direction {
                    Direction::Forward => **key >= target,
                    Direction::Reverse => **key <= target,
                })
                .collect();
            let mut at = rest.iter();
            let mut more = scan.seek(&target).unwrap();
            for _ in 0..5 {
                match at.next() {
                    None => assert!(!more, "{target:?}"),
                    Some((key, value)) => {
                        assert!(more, "{target:?}");
                        assert_eq!((scan.key(), scan.value()), (&key[..], &value[..]));
                        more = scan.next().unwrap();
                    }
                }
            }
        }
    }

    fn reopen(&mut self) {
        self.kv.close().unwrap();
        let (kv, recovered) = Kv::open(self.disk.clone(), self.options.clone()).unwrap();
        assert!(!recovered.is_new);
        assert_eq!(recovered.torn_tail_bytes, 0);
        assert_eq!(recovered.seq, self.kv.stats().seq);
        self.kv = kv;
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..60 => self.write(),
            60..62 => self.drop_tree(),
            62..72 => {
                let (snapshot, model) = (self.kv.snapshot(), self.model.clone());
                self.check_gets(&snapshot, &model);
                self.check_scan(&snapshot, &model);
            }
            72..78 => {
                let (snapshot, model) = (self.kv.snapshot(), self.model.clone());
                if self.kept.len() > 4 {
                    self.kept.remove(0);
                }
                self.kept.push((snapshot, model));
            }
            78..88 if !self.kept.is_empty() => {
                let at = self.rng.below(self.kept.len() as u64) as usize;
                let (snapshot, model) = self.kept[at].clone();
                self.check_gets(&snapshot, &model);
                self.check_scan(&snapshot, &model);
            }
            88..91 => self.kv.flush().unwrap(),
            91..97 => drop(self.kv.compact_step().unwrap()),
            97 => self.kv.compact_all().unwrap(),
            98 => self.reopen(),
            _ => {}
        }
    }

    fn finish(mut self) {
        let report = self.kv.verify(|_| true).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        self.reopen();
        self.kv.compact_all().unwrap();
        let stats = self.kv.stats();
        let tombstones: u64 = stats.levels.iter().map(|level| level.tombstones).sum();
        assert_eq!(tombstones, 0, "{stats:?}");
        assert_eq!(stats.dropped_trees, 0);
        let entries: u64 = stats.levels.iter().map(|level| level.entries).sum();
        assert_eq!(entries, self.model.len() as u64);
        for (snapshot, model) in std::mem::take(&mut self.kept) {
            self.check_scan(&snapshot, &model);
        }
        let (snapshot, model) = (self.kv.snapshot(), self.model.clone());
        for _ in 0..20 {
            self.check_scan(&snapshot, &model);
            self.check_gets(&snapshot, &model);
        }
    }
}

fn run(seeds: std::ops::Range<u64>, steps: u64) {
    for seed in seeds {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..steps {
            world.step();
        }
        world.finish();
    }
}

#[test]
fn many_short_histories() {
    run(0..40, 150);
}

#[test]
fn some_long_histories() {
    run(1000..1006, 2000);
}
