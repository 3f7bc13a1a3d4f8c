//! The database as it was: random commits from seeds, every state remembered by its time, and reads at random times
//! compared with it, through flushes, compactions, dropped trees, power cuts and reopenings.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use espalier_kv::{Batch, CommitError, Direction, Kv, MemDisk, Options, Rng, Snapshot};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const DROPPED_TREE: u64 = 9;

struct World {
    rng: Rng,
    disk: Arc<MemDisk>,
    options: Options,
    kv: Kv,
    /// Every state with its time.
    states: Vec<(u64, Model)>,
    is_tree_dropped: bool,
}

impl World {
    fn new(seed: u64, options: Options) -> World {
        let disk = Arc::new(MemDisk::new());
        let (kv, _) = Kv::open(disk.clone(), options.clone()).unwrap();
        let states = vec![(kv.stamp(), Model::new())];
        World { rng: Rng::new(seed), disk, options, kv, states, is_tree_dropped: false }
    }

    /// Few keys, so that most writes displace a version; with zeros and prefixes of each other.
    fn key(&mut self) -> Vec<u8> {
        let trees = if self.is_tree_dropped { 2 } else { 3 };
        let tree = [1, 2, DROPPED_TREE][self.rng.below(trees) as usize];
        let mut key = tree.to_be_bytes().to_vec();
        let count = self.rng.below(4);
        key.extend((0..count).map(|_| [0, 1, 0xff][self.rng.below(3) as usize]));
        key
    }

    fn write(&mut self) {
        let mut model = self.states.last().unwrap().1.clone();
        let mut batch = Batch::new();
        for _ in 0..1 + self.rng.below(4) {
            let key = self.key();
            if self.rng.below(3) == 0 {
                batch.delete(&key);
                model.remove(&key);
            } else {
                let value = vec![self.rng.next_u64() as u8; self.rng.below(60) as usize];
                batch.put(&key, &value);
                model.insert(key, value);
            }
        }
        let commit = self.kv.commit(batch, None).unwrap();
        self.states.push((commit.stamp, model));
    }

    fn drop_tree(&mut self) {
        if std::mem::replace(&mut self.is_tree_dropped, true) {
            return;
        }
        let commit = self.kv.drop_tree(DROPPED_TREE).unwrap();
        let last = self.states.last().unwrap().1.clone();
        self.states.push((commit.stamp, last));
        // What was in it cannot be read any more, whatever the time.
        for (_, model) in &mut self.states {
            model.retain(|key, _| !key.starts_with(&DROPPED_TREE.to_be_bytes()));
        }
    }

    fn reopen(&mut self) {
        if self.rng.below(2) == 0 {
            self.kv.close().unwrap();
        } else {
            // A power cut; what was waited for is all that there is.
            self.kv.wait_all_durable().unwrap();
            self.disk = Arc::new(self.disk.crash(self.rng.next_u64()));
        }
        self.kv = Kv::open(self.disk.clone(), self.options.clone()).unwrap().0;
    }

    fn step(&mut self) {
        match self.rng.below(200) {
            0 => self.reopen(),
            1..5 => self.kv.flush().unwrap(),
            5..9 => drop(self.kv.compact_step().unwrap()),
            9 => self.kv.compact_all().unwrap(),
            10 if self.rng.below(10) == 0 => self.drop_tree(),
            10..40 => self.look(),
            _ => self.write(),
        }
    }

    /// Reads at a random time.
    fn look(&mut self) {
        // The time before the first commit is not remembered beyond a restart.
        if self.states.len() < 2 {
            return;
        }
        let at = 1 + self.rng.below(self.states.len() as u64 - 1) as usize;
        let (mut stamp, model) = self.states[at].clone();
        // Any time up to the next commit is as good.
        let next = self.states.get(at + 1).map_or(stamp + 3, |next| next.0);
        stamp += self.rng.below(next - stamp);
        let Some(snapshot) = self.kv.snapshot_at(stamp) else {
            assert_ne!(self.options.past_bytes, u64::MAX, "everything is kept");
            assert!(at + 1 < self.states.len(), "the present can be read");
            // What is too old stays so, and so does everything before.
            let (older, _) = self.states[self.rng.below(at as u64 + 1) as usize];
            assert!(self.kv.snapshot_at(older).is_none());
            return;
        };
        assert_eq!(snapshot.stamp(), stamp);
        self.compare(&snapshot, &model);
    }

    fn compare(&mut self, snapshot: &Snapshot, model: &Model) {
        let alive = |key: &[u8]| !self.is_tree_dropped || !key.starts_with(&DROPPED_TREE.to_be_bytes());
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut scan = snapshot.scan(Bound::Unbounded, Bound::Unbounded, direction).unwrap();
            let mut found = Vec::new();
            while scan.next().unwrap() {
                if alive(scan.key()) {
                    found.push((scan.key().to_vec(), scan.value().to_vec()));
                }
            }
            let mut expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
            if direction == Direction::Reverse {
                expected.reverse();
            }
            assert_eq!(found, expected, "{direction:?}");
        }
        for _ in 0..10 {
            let (key, low) = (self.key(), self.key());
            assert_eq!(snapshot.get(&key).unwrap().as_deref(), model.get(&key).map(|value| &value[..]));
            let mut lookup = snapshot.lookup(&key[..8], &[0xff; 9]);
            assert_eq!(lookup.get(&key).unwrap(), model.get(&key).map(|value| &value[..]));
            // Up to the tree that may be dropped.
            let end = DROPPED_TREE.to_be_bytes();
            let mut scan = snapshot.scan(Bound::Excluded(&low), Bound::Excluded(&end), Direction::Forward).unwrap();
            let is_found = scan.seek(&key).unwrap();
            let expected = model.keys().find(|k| **k > low && **k >= key && ***k < end[..]);
            assert_eq!(is_found.then(|| scan.key()), expected.map(|k| &k[..]));
            let mut scan = snapshot.scan(Bound::Unbounded, Bound::Included(&low), Direction::Reverse).unwrap();
            let is_found = scan.seek(&key).unwrap();
            let expected = model.range::<Vec<u8>, _>(..=low).rev().find(|(k, _)| **k <= key);
            assert_eq!(is_found.then(|| scan.key()), expected.map(|(k, _)| &k[..]));
        }
    }
}

#[test]
fn every_state_of_the_window_can_be_read() {
    for seed in 0..6 {
        let background = seed % 2 == 0;
        let options = Options { past_bytes: u64::MAX, memtable_bytes: 16 << 10, background, ..Options::tiny() };
        let mut world = World::new(seed, options);
        (0..1000).for_each(|_| world.step());
        assert!(world.kv.stats().past_bytes > 0);
        assert!(world.kv.verify(|_| true).unwrap().problems.is_empty());
    }
}

#[test]
fn a_bound_by_size_shortens_the_window_and_makes_nothing_wrong() {
    for seed in 100..106 {
        let mut world = World::new(seed, Options { past_bytes: 8 << 10, background: seed % 2 == 0, ..Options::tiny() });
        (0..1000).for_each(|_| world.step());
        world.kv.flush().unwrap();
        let stats = world.kv.stats();
        assert!(stats.past_bytes <= 8 << 10, "{stats:?}");
        assert!(stats.past_seq > 0, "the window was not shortened");
        let oldest = world.states[0].0;
        assert!(world.kv.snapshot_at(oldest).is_none());
    }
}

#[test]
fn nothing_is_kept_without_a_window() {
    let mut world = World::new(7, Options { past_age: Duration::ZERO, background: false, ..Options::tiny() });
    (0..500).for_each(|_| world.write());
    world.kv.flush().unwrap();
    world.kv.compact_all().unwrap();
    assert_eq!(world.kv.stats().past_runs, 0);
    let (stamp, model) = world.states.last().unwrap().clone();
    let now = world.kv.snapshot_at(stamp).unwrap();
    world.compare(&now, &model);
    assert!(world.kv.snapshot_at(stamp - 1).is_none());
}

#[test]
fn trees_without_a_past_take_no_room() {
    let options = Options { past_less_trees: vec![5], past_bytes: u64::MAX, background: false, ..Options::tiny() };
    let kv = Kv::open(Arc::new(MemDisk::new()), options).unwrap().0;
    for n in 0..300u64 {
        let mut batch = Batch::new();
        batch.put(&5u64.to_be_bytes(), &n.to_be_bytes());
        kv.commit(batch, None).unwrap();
    }
    kv.flush().unwrap();
    assert_eq!(kv.stats().past_runs, 0);
}

#[test]
fn a_commit_on_the_past_conflicts_with_what_came_after() {
    let mut world = World::new(3, Options { past_bytes: u64::MAX, background: false, ..Options::tiny() });
    let put = |kv: &Kv, key: &[u8], at: Option<&Snapshot>| {
        let mut batch = Batch::new();
        batch.put(key, b"v");
        kv.commit(batch, at)
    };
    put(&world.kv, b"changed", None).unwrap();
    let before = put(&world.kv, b"same", None).unwrap();
    put(&world.kv, b"changed", None).unwrap();
    // From the memtable, from a run, and after a restart.
    for round in 0..3 {
        let past = world.kv.snapshot_at(before.stamp).unwrap();
        assert!(matches!(put(&world.kv, b"changed", Some(&past)), Err(CommitError::Conflict { .. })), "{round}");
        assert!(world.kv.is_changed(b"changed", &past).unwrap());
        assert!(!world.kv.is_changed(b"same", &past).unwrap());
        match round {
            0 => world.kv.flush().unwrap(),
            _ => world.reopen(),
        }
    }
}
