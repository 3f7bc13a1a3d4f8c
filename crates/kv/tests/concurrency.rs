//! Real threads: no lost update, no snapshot that changes, and one sync for many commits.

#![allow(clippy::unwrap_used)]

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use espalier_kv::{Batch, CommitError, Direction, Kv, MemDisk, Options, Rng, Snapshot};

fn open(options: Options) -> (Arc<MemDisk>, Kv) {
    let disk = Arc::new(MemDisk::new());
    let (kv, _) = Kv::open(disk.clone(), options).unwrap();
    (disk, kv)
}

fn key(n: u64) -> Vec<u8> {
    [1u64.to_be_bytes(), n.to_be_bytes()].concat()
}

fn number(snapshot: &Snapshot, n: u64) -> u64 {
    let value = snapshot.get(&key(n)).unwrap();
    value.map_or(0, |bytes| u64::from_be_bytes(bytes[..8].try_into().unwrap()))
}

/// Padding makes memtables fill up, so that flushes and compactions run all the time.
fn padded(n: u64) -> Vec<u8> {
    let mut value = n.to_be_bytes().to_vec();
    value.resize(100, 0);
    value
}

#[test]
fn increments_with_retry_add_up() {
    const WRITERS: u64 = 6;
    const EACH: u64 = 400;
    const COUNTERS: u64 = 5;
    let (disk, kv) = open(Options::tiny());
    let conflicts = AtomicU64::new(0);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (kv, conflicts) = (&kv, &conflicts);
            scope.spawn(move || {
                let mut rng = Rng::new(writer);
                for n in 0..EACH {
                    let counter = rng.below(COUNTERS);
                    loop {
                        let snapshot = kv.snapshot();
                        let mut batch = Batch::new();
                        let next = number(&snapshot, counter) + 1;
                        // Deleting now and then exercises tombstones in the conflict check.
                        if next.is_multiple_of(7) {
                            batch.delete(&key(1000 + counter));
                        } else {
                            batch.put(&key(1000 + counter), b"x");
                        }
                        batch.put(&key(counter), &padded(next));
                        match kv.commit(batch, Some(&snapshot)) {
                            Ok(_) => break,
                            Err(CommitError::Conflict { .. }) => {
                                conflicts.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    if n % 100 == 99 {
                        kv.flush().unwrap();
                    }
                }
            });
        }
    });
    let total = |kv: &Kv| {
        let snapshot = kv.snapshot();
        (0..COUNTERS).map(|n| number(&snapshot, n)).sum::<u64>()
    };
    assert_eq!(total(&kv), WRITERS * EACH);
    assert!(conflicts.load(Ordering::Relaxed) > 0, "nothing was tested");
    kv.close().unwrap();
    let (kv, _) = Kv::open(disk, Options::tiny()).unwrap();
    assert_eq!(total(&kv), WRITERS * EACH);
}

#[test]
fn transfers_between_accounts_never_show_a_wrong_sum() {
    const ACCOUNTS: u64 = 50;
    let (_, kv) = open(Options::tiny());
    let mut batch = Batch::new();
    (0..ACCOUNTS).for_each(|n| batch.put(&key(n), &padded(100)));
    kv.commit(batch, None).unwrap();
    let stop = AtomicBool::new(false);
    let checked = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (kv, stop) = (&kv, &stop);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                for _ in 0..3000 {
                    let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
                    let snapshot = kv.snapshot();
                    let amount = number(&snapshot, from).min(10);
                    if from == to || amount == 0 {
                        continue;
                    }
                    let mut batch = Batch::new();
                    batch.put(&key(from), &padded(number(&snapshot, from) - amount));
                    batch.put(&key(to), &padded(number(&snapshot, to) + amount));
                    match kv.commit(batch, Some(&snapshot)) {
                        Ok(_) | Err(CommitError::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            let (kv, stop, checked) = (&kv, &stop, &checked);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let snapshot = kv.snapshot();
                    for _ in 0..2 {
                        let mut scan = snapshot.scan(Bound::Unbounded, Bound::Unbounded, direction).unwrap();
                        let (mut sum, mut count) = (0, 0);
                        while scan.next().unwrap() {
                            sum += u64::from_be_bytes(scan.value()[..8].try_into().unwrap());
                            count += 1;
                        }
                        assert_eq!((sum, count), (ACCOUNTS * 100, ACCOUNTS));
                        let gets: u64 = (0..ACCOUNTS).map(|n| number(&snapshot, n)).sum();
                        assert_eq!(gets, ACCOUNTS * 100);
                        checked.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                kv.compact_all().unwrap();
            }
        });
    });
    assert!(checked.load(Ordering::Relaxed) > 10);
}

#[test]
fn many_waiting_commits_share_a_sync() {
    const THREADS: u64 = 32;
    const EACH: u64 = 30;
    let (_, kv) = open(Options::default());
    let before = kv.stats().log_syncs;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let kv = &kv;
            scope.spawn(move || {
                for n in 0..EACH {
                    let mut batch = Batch::new();
                    batch.put_new(&key(thread * EACH + n), b"value");
                    let commit = kv.commit(batch, None).unwrap();
                    // Lets others get in, as a real disk's latency would.
                    thread::yield_now();
                    kv.wait_durable(&commit).unwrap();
                }
            });
        }
    });
    let syncs = kv.stats().log_syncs - before;
    assert!(syncs < THREADS * EACH, "{syncs} syncs for {}", THREADS * EACH);
    assert!(syncs > 0);
}

#[test]
fn a_snapshot_outlives_flush_compaction_and_close() {
    let (_, kv) = open(Options::tiny());
    for n in 0..200 {
        let mut batch = Batch::new();
        batch.put(&key(n), &padded(n));
        kv.commit(batch, None).unwrap();
    }
    let snapshot = kv.snapshot();
    let held = snapshot.get(&key(7)).unwrap().unwrap();
    kv.drop_tree(1).unwrap();
    kv.flush().unwrap();
    kv.compact_all().unwrap();
    assert!(kv.snapshot().get(&key(7)).unwrap().is_none());
    kv.close().unwrap();
    drop(kv);
    assert_eq!(&held[..8], 7u64.to_be_bytes());
    assert!((0..200).all(|n| number(&snapshot, n) == n));
}

#[test]
fn a_dropped_tree_never_comes_back_while_flushes_and_compactions_race() {
    let (_, kv) = open(Options { background: false, ..Options::tiny() });
    let stop = AtomicBool::new(false);
    let count = |tree: u64| {
        let (low, high) = (tree.to_be_bytes(), (tree + 1).to_be_bytes());
        let snapshot = kv.snapshot();
        let mut scan = snapshot.scan(Bound::Included(&low), Bound::Excluded(&high), Direction::Forward).unwrap();
        let mut count = 0;
        while scan.next().unwrap() {
            count += 1;
        }
        count
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                kv.compact_step().unwrap();
            }
        });
        for tree in 10..400u64 {
            for n in 0..3u64 {
                let mut batch = Batch::new();
                batch.put_new(&[tree.to_be_bytes(), n.to_be_bytes()].concat(), &[1; 50]);
                kv.commit(batch, None).unwrap();
            }
            // The keys and the drop in different memtables, flushed right after one another.
            if tree % 2 == 0 {
                thread::scope(|inner| {
                    inner.spawn(|| kv.flush().unwrap());
                    kv.drop_tree(tree).unwrap();
                });
            } else {
                kv.drop_tree(tree).unwrap();
            }
            kv.flush().unwrap();
            assert_eq!(count(tree), 0, "tree {tree}");
            assert_eq!(count(tree - 5), 0, "tree {} came back", tree - 5);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!((10..400).all(|tree| count(tree) == 0));
    kv.compact_all().unwrap();
    assert!((10..400).all(|tree| count(tree) == 0));
    assert_eq!(kv.stats().dropped_trees, 0);
}
