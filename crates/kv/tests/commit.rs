//! What a commit promises: conflicts, guards, fresh keys, dropped trees, limits.

#![allow(clippy::unwrap_used)]

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use espalier_kv::{Batch, CommitError, Direction, Kv, KvError, MemDisk, Options, Snapshot, VALUE_BYTES_MAX};

fn open(options: Options) -> Kv {
    Kv::open(Arc::new(MemDisk::new()), options).unwrap().0
}

fn manual() -> Options {
    Options { background: false, ..Options::tiny() }
}

fn put(key: &[u8], value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(key, value);
    batch
}

fn delete(key: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.delete(key);
    batch
}

fn is_conflict(kv: &Kv, batch: Batch, snapshot: &Snapshot) -> bool {
    match kv.commit(batch, Some(snapshot)) {
        Ok(_) => false,
        Err(CommitError::Conflict { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

/// Where the change that conflicts may have got to by the time of the check.
fn ways() -> [fn(&Kv); 4] {
    [
        |_| {},
        |kv| kv.flush().unwrap(),
        |kv| kv.compact_all().unwrap(),
        |kv| {
            kv.flush().unwrap();
            kv.commit(put(b"other", b"x"), None).unwrap();
            kv.flush().unwrap();
        },
    ]
}

#[test]
fn a_newer_version_conflicts_wherever_it_is() {
    for settle in ways() {
        let kv = open(manual());
        kv.commit(put(b"a", b"1"), None).unwrap();
        kv.commit(put(b"b", b"1"), None).unwrap();
        let snapshot = kv.snapshot();
        kv.commit(put(b"a", b"2"), None).unwrap();
        settle(&kv);
        assert!(is_conflict(&kv, put(b"a", b"3"), &snapshot));
        assert!(is_conflict(&kv, delete(b"a"), &snapshot));
        let mut guarded = put(b"c", b"1");
        guarded.guard(b"a");
        assert!(is_conflict(&kv, guarded, &snapshot));
        assert!(kv.snapshot().get(b"c").unwrap().is_none(), "nothing of it");
        assert!(!is_conflict(&kv, put(b"b", b"2"), &snapshot));
        assert!(!is_conflict(&kv, put(b"a", b"3"), &kv.snapshot()));
    }
}

#[test]
fn a_deletion_conflicts_even_when_its_tombstone_is_gone() {
    for settle in ways() {
        let kv = open(manual());
        kv.commit(put(b"a", b"1"), None).unwrap();
        let snapshot = kv.snapshot();
        kv.commit(delete(b"a"), None).unwrap();
        settle(&kv);
        assert!(is_conflict(&kv, put(b"a", b"2"), &snapshot));
        assert!(!is_conflict(&kv, put(b"a", b"2"), &kv.snapshot()));
    }
}

#[test]
fn within_the_retention_a_removed_tombstone_does_not_disturb_others() {
    let kv = open(Options { tombstone_retention: Duration::from_secs(3600), ..manual() });
    kv.commit(put(b"a", b"1"), None).unwrap();
    let snapshot = kv.snapshot();
    kv.commit(delete(b"a"), None).unwrap();
    kv.compact_all().unwrap();
    assert!(is_conflict(&kv, put(b"a", b"2"), &snapshot));
    assert!(!is_conflict(&kv, put(b"never there", b"2"), &snapshot));
}

#[test]
fn fresh_keys_and_no_snapshot_skip_the_check() {
    let kv = open(manual());
    let snapshot = kv.snapshot();
    kv.commit(put(b"a", b"1"), None).unwrap();
    let mut batch = Batch::new();
    batch.put_new(b"a", b"2");
    assert!(!is_conflict(&kv, batch, &snapshot));
    kv.commit(put(b"a", b"3"), None).unwrap();
    assert_eq!(&*kv.snapshot().get(b"a").unwrap().unwrap(), b"3");
}

#[test]
fn guards_alone_check_and_write_nothing() {
    let kv = open(manual());
    let snapshot = kv.snapshot();
    let mut batch = Batch::new();
    batch.guard(b"a");
    let commit = kv.commit(batch.clone(), Some(&snapshot)).unwrap();
    kv.wait_durable(&commit).unwrap();
    assert_eq!(kv.snapshot().seq(), snapshot.seq());
    kv.commit(put(b"a", b"1"), None).unwrap();
    assert!(is_conflict(&kv, batch, &snapshot));
}

#[test]
fn the_last_operation_on_a_key_wins() {
    let kv = open(manual());
    let mut batch = put(b"a", b"1");
    batch.delete(b"a");
    batch.put(b"a", b"2");
    batch.put(b"b", b"1");
    batch.delete(b"b");
    kv.commit(batch, None).unwrap();
    for _ in 0..2 {
        let snapshot = kv.snapshot();
        assert_eq!(&*snapshot.get(b"a").unwrap().unwrap(), b"2");
        assert!(snapshot.get(b"b").unwrap().is_none());
        kv.flush().unwrap();
    }
}

fn tree_key(tree: u64, n: u64) -> Vec<u8> {
    [tree.to_be_bytes(), n.to_be_bytes()].concat()
}

/// Entries with a key of the shape of `tree_key`.
fn count(snapshot: &Snapshot, direction: Direction) -> usize {
    let mut scan = snapshot.scan(Bound::Unbounded, Bound::Unbounded, direction).unwrap();
    let mut count = 0;
    while scan.next().unwrap() {
        count += usize::from(scan.key().len() == 16);
    }
    count
}

#[test]
fn a_dropped_tree_is_gone_at_once_and_for_ever() {
    for settle in ways() {
        let disk = Arc::new(MemDisk::new());
        let (kv, _) = Kv::open(disk.clone(), manual()).unwrap();
        for n in 0..50 {
            let mut batch = Batch::new();
            for tree in [1, 2, u64::MAX] {
                batch.put_new(&tree_key(tree, n), &[7; 50]);
            }
            kv.commit(batch, None).unwrap();
        }
        let before = kv.snapshot();
        let mut batch = put(&tree_key(2, 99), b"of this batch");
        batch.put(&tree_key(1, 99), b"kept");
        batch.drop_tree(2);
        batch.drop_tree(u64::MAX);
        kv.commit(batch, None).unwrap();
        let check = |kv: &Kv| {
            let now = kv.snapshot();
            assert!(now.get(&tree_key(2, 3)).unwrap().is_none());
            assert!(now.get(&tree_key(2, 99)).unwrap().is_none());
            assert_eq!(count(&now, Direction::Forward), 51);
            assert_eq!(count(&now, Direction::Reverse), 51);
        };
        check(&kv);
        settle(&kv);
        check(&kv);
        assert_eq!(count(&before, Direction::Forward), 150);
        assert!(is_conflict(&kv, put(&tree_key(2, 3), b"x"), &before));
        kv.close().unwrap();
        let (kv, _) = Kv::open(disk, manual()).unwrap();
        check(&kv);
        kv.compact_all().unwrap();
        check(&kv);
        assert_eq!(kv.stats().dropped_trees, 0);
    }
}

#[test]
fn a_write_to_a_dropped_tree_is_a_conflict_even_if_unchecked() {
    let kv = open(manual());
    kv.commit(put(&tree_key(5, 1), b"x"), None).unwrap();
    kv.drop_tree(5).unwrap();
    let mut batch = Batch::new();
    batch.put_new(&tree_key(5, 2), b"x");
    assert!(matches!(kv.commit(batch, None), Err(CommitError::Conflict { .. })));
}

#[test]
fn over_limits_is_refused_whole() {
    let kv = open(manual());
    let mut batch = put(b"a", b"1");
    batch.put(b"b", &vec![0; VALUE_BYTES_MAX + 1]);
    assert!(matches!(kv.commit(batch, None), Err(CommitError::Kv(KvError::TooLarge { .. }))));
    assert!(kv.snapshot().get(b"a").unwrap().is_none());
}

#[test]
fn large_values_and_long_keys_survive_everything() {
    let disk = Arc::new(MemDisk::new());
    let (kv, _) = Kv::open(disk.clone(), Options::default()).unwrap();
    let value: Vec<u8> = (0..20 << 20).map(|n: u32| (n >> 3) as u8).collect();
    let key = vec![b'k'; 100_000];
    kv.commit(put(&key, &value), None).unwrap();
    kv.commit(put(b"small", b"1"), None).unwrap();
    for round in 0..3 {
        let found = kv.snapshot().get(&key).unwrap().unwrap();
        assert!(*found == value[..], "round {round}");
        match round {
            0 => kv.flush().unwrap(),
            _ => kv.compact_all().unwrap(),
        }
    }
    kv.close().unwrap();
    let (kv, _) = Kv::open(disk, Options::default()).unwrap();
    assert!(*kv.snapshot().get(&key).unwrap().unwrap() == value[..]);
}

#[test]
fn after_close_commits_fail_and_reads_work() {
    let kv = open(Options::tiny());
    kv.commit(put(b"a", b"1"), None).unwrap();
    kv.close().unwrap();
    kv.close().unwrap();
    assert!(matches!(kv.commit(put(b"a", b"2"), None), Err(CommitError::Kv(KvError::Closed))));
    assert_eq!(&*kv.snapshot().get(b"a").unwrap().unwrap(), b"1");
}

#[test]
fn sizes_are_estimated() {
    let kv = open(manual());
    for n in 0..400 {
        kv.commit(put(&tree_key(n % 2, n), &[n as u8; 100]), None).unwrap();
    }
    let of = |tree: u64| {
        let (low, high) = (tree.to_be_bytes(), (tree + 1).to_be_bytes());
        kv.approximate_bytes(Bound::Included(&low), Bound::Excluded(&high))
    };
    assert!(of(0) > 5_000 && of(1) > 5_000, "{} {}", of(0), of(1));
    kv.compact_all().unwrap();
    assert!(of(0) > 500 && of(1) > 500, "{} {}", of(0), of(1));
    assert_eq!(of(2), 0);
}

#[test]
fn a_scan_passes_no_more_deleted_entries_than_it_is_told() {
    for settle in ways() {
        let kv = open(manual());
        for n in [0u64, 1_000] {
            kv.commit(put(&tree_key(1, n), b"kept"), None).unwrap();
        }
        for n in 1..1_000u64 {
            kv.commit(put(&tree_key(1, n), b"x"), None).unwrap();
        }
        for n in 1..1_000u64 {
            kv.commit(delete(&tree_key(1, n)), None).unwrap();
        }
        let snapshot = kv.snapshot();
        settle(&kv);
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut scan = snapshot.scan(Bound::Unbounded, Bound::Unbounded, direction).unwrap();
            scan.pass_at_most(100);
            assert!(scan.next().unwrap());
            assert!(!scan.next().unwrap());
            assert_eq!(scan.deleted(), 100);
            let mut all = snapshot.scan(Bound::Unbounded, Bound::Unbounded, direction).unwrap();
            assert!(all.next().unwrap() && all.next().unwrap() && !all.next().unwrap());
            assert_eq!(all.deleted(), 999);
        }
    }
}
