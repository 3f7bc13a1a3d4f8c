//! The log as history: every durable commit once and in order, across flushes, restarts and power cuts; what is gone is
//! said to be gone.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use espalier_kv::{Batch, Disk, Entry, History, Kv, KvError, MemDisk, Options};

fn open(disk: &Arc<MemDisk>, options: Options) -> Kv {
    Kv::open(disk.clone(), options).unwrap().0
}

fn batch(n: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(&n.to_be_bytes(), &[7; 100]);
    batch.annotation().extend_from_slice(&n.to_le_bytes());
    batch
}

/// What a reader yields: the number in each commit's annotation, checked against its entry, and its stamp.
fn read(history: &mut History) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    while let Some(record) = history.read().unwrap() {
        let n = u64::from_le_bytes(record.annotation.try_into().unwrap());
        let entries: Vec<_> = record.entries().collect();
        assert_eq!(entries, [Entry::Put { key: &n.to_be_bytes(), value: &[7; 100] }]);
        found.push((n, record.stamp));
    }
    found
}

fn numbers(history: &mut History) -> Vec<u64> {
    read(history).into_iter().map(|(n, _)| n).collect()
}

#[test]
fn everything_is_told_once_across_flushes_and_restarts() {
    let options = || Options { history_bytes: 1 << 30, background: false, ..Options::tiny() };
    let disk = Arc::new(MemDisk::new());
    let mut stamps = Vec::new();
    for round in 0..4 {
        let kv = open(&disk, options());
        for n in round * 100..round * 100 + 100 {
            stamps.push(kv.commit(batch(n), None).unwrap().stamp);
        }
        kv.wait_all_durable().unwrap();
        kv.flush().unwrap();
        let expected: Vec<u64> = (0..round * 100 + 100).collect();
        let told = read(&mut kv.history(0).unwrap());
        assert_eq!(told.iter().map(|(n, _)| *n).collect::<Vec<_>>(), expected);
        assert_eq!(told.iter().map(|(_, stamp)| *stamp).collect::<Vec<_>>(), stamps);
        // From anywhere in the middle.
        for from in [0, 37, 99, told.len() - 1] {
            let rest = numbers(&mut kv.history(stamps[from]).unwrap());
            assert_eq!(rest, expected[from + 1..]);
        }
        assert!(kv.stats().flushes > 0);
        kv.close().unwrap();
    }
    assert!(stamps.is_sorted_by(|a, b| a < b));
}

#[test]
fn stamps_grow_across_a_restart_without_a_log() {
    let options = || Options { history_bytes: 0, background: false, ..Options::tiny() };
    let disk = Arc::new(MemDisk::new());
    let kv = open(&disk, options());
    // So many that stamps run ahead of the clock's seconds, as far as increments go.
    let last = (0..200).map(|n| kv.commit(batch(n), None).unwrap().stamp).max().unwrap();
    kv.flush().unwrap();
    kv.close().unwrap();
    let kv = open(&disk, options());
    assert!(kv.snapshot().stamp() >= last);
    assert!(kv.commit(batch(1), None).unwrap().stamp > last);
}

#[test]
fn a_reader_sees_only_what_a_power_cut_leaves() {
    let mut unseen = 0;
    for seed in 0..200 {
        let disk = Arc::new(MemDisk::new());
        let options = || Options { history_bytes: 1 << 30, background: false, ..Options::tiny() };
        let kv = open(&disk, options());
        let mut history = kv.history(0).unwrap();
        let mut seen = Vec::new();
        for n in 0..60 {
            let commit = kv.commit(batch(n), None).unwrap();
            if (n + seed) % 7 == 0 {
                kv.wait_durable(&commit).unwrap();
            }
            seen.extend(read(&mut history));
        }
        unseen += 60 - seen.len();
        let after = Arc::new(disk.crash(seed));
        let kv = open(&after, options());
        let told = read(&mut kv.history(0).unwrap());
        assert_eq!(told[..seen.len()], seen, "seed {seed}");
        // And what the database holds is what history tells.
        let snapshot = kv.snapshot();
        let held = (0..60u64).filter(|n| snapshot.get(&n.to_be_bytes()).unwrap().is_some()).count();
        assert_eq!(held, told.len(), "seed {seed}");
    }
    assert!(unseen > 200, "commits that were not durable when the power went");
}

#[test]
fn a_place_that_is_gone_is_told() {
    let options = Options { history_bytes: 8 << 10, background: false, ..Options::tiny() };
    let disk = Arc::new(MemDisk::new());
    let kv = open(&disk, options.clone());
    let first = kv.commit(batch(0), None).unwrap().stamp;
    kv.wait_all_durable().unwrap();
    let mut slow = kv.history(0).unwrap();
    let mut tail = kv.history(first).unwrap();
    let mut told = Vec::new();
    for n in 1..1000 {
        kv.commit(batch(n), None).unwrap();
        if n % 10 == 0 {
            kv.wait_all_durable().unwrap();
            told.extend(numbers(&mut tail));
        }
    }
    kv.flush().unwrap();
    told.extend(numbers(&mut tail));
    assert_eq!(told, (1..1000).collect::<Vec<_>>(), "a reader that keeps up misses nothing");
    assert!(matches!(slow.read(), Err(KvError::HistoryLost { .. })), "one that does not is told");
    assert!(matches!(kv.history(first), Err(KvError::HistoryLost { .. })));
    let floor = kv.stats().history_stamp;
    let rest = numbers(&mut kv.history(floor).unwrap());
    assert_eq!(rest, (1000 - rest.len() as u64..1000).collect::<Vec<_>>());
    let bytes = kv.stats().history_bytes;
    assert!((1..=(8 << 10) + (8 << 10)).contains(&bytes), "{bytes}");
    // The same after a restart.
    kv.close().unwrap();
    let kv = open(&disk, options);
    assert_eq!(kv.stats().history_stamp, floor);
    assert!(matches!(kv.history(floor - 1), Err(KvError::HistoryLost { .. })));
    assert_eq!(numbers(&mut kv.history(floor).unwrap()), rest);
}

#[test]
fn old_history_goes_by_age() {
    let options = Options { history_age: Duration::ZERO, history_bytes: 1 << 30, background: false, ..Options::tiny() };
    let kv = open(&Arc::new(MemDisk::new()), options);
    for n in 0..500 {
        kv.commit(batch(n), None).unwrap();
    }
    std::thread::sleep(Duration::from_millis(2100));
    kv.commit(batch(500), None).unwrap();
    kv.flush().unwrap();
    kv.commit(batch(501), None).unwrap();
    kv.flush().unwrap();
    assert!(matches!(kv.history(0), Err(KvError::HistoryLost { .. })));
}

#[test]
fn history_with_a_hole_is_none() {
    let options = Options { history_bytes: 1 << 30, background: false, ..Options::tiny() };
    let disk = Arc::new(MemDisk::new());
    let kv = open(&disk, options.clone());
    for n in 0..500 {
        kv.commit(batch(n), None).unwrap();
    }
    kv.flush().unwrap();
    kv.close().unwrap();
    // A removal that a power cut undid for all files but one.
    use espalier_kv::Disk;
    let mut logs: Vec<_> = disk.list().unwrap().into_iter().filter(|name| name.ends_with(".log")).collect();
    logs.sort();
    assert!(logs.len() > 4);
    disk.remove(&logs[2]).unwrap();
    let kv = open(&disk, options);
    assert!(matches!(kv.history(0), Err(KvError::HistoryLost { .. })));
    let rest = numbers(&mut kv.history(kv.stats().history_stamp).unwrap());
    assert!(!rest.is_empty());
    assert_eq!(rest, (500 - rest.len() as u64..500).collect::<Vec<_>>());
}

#[test]
fn readers_follow_writers() {
    let kv = open(&Arc::new(MemDisk::new()), Options { history_bytes: 1 << 30, ..Options::tiny() });
    let grown = Arc::new((std::sync::Mutex::new(0u64), std::sync::Condvar::new()));
    let listener = grown.clone();
    kv.on_durable(move || {
        *listener.0.lock().unwrap() += 1;
        listener.1.notify_all();
    });
    let next = AtomicU64::new(0);
    const EACH: u64 = 300;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let commit = kv.commit(batch(next.fetch_add(1, Ordering::Relaxed)), None).unwrap();
                    kv.wait_durable(&commit).unwrap();
                }
            });
        }
        for _ in 0..3 {
            scope.spawn(|| {
                let mut history = kv.history(0).unwrap();
                let mut told = Vec::new();
                let mut heard = 0;
                while told.len() < 4 * EACH as usize {
                    told.extend(read(&mut history));
                    let count = grown.0.lock().unwrap();
                    let waited = grown.1.wait_timeout_while(count, Duration::from_secs(20), |count| *count == heard);
                    let (count, timeout) = waited.unwrap();
                    assert!(!timeout.timed_out() || told.len() == 4 * EACH as usize, "nobody told of a durable commit");
                    heard = *count;
                }
                assert!(told.is_sorted_by(|a, b| a.1 < b.1));
                let mut numbers: Vec<_> = told.into_iter().map(|(n, _)| n).collect();
                numbers.sort_unstable();
                assert_eq!(numbers, (0..4 * EACH).collect::<Vec<_>>());
            });
        }
    });
}

#[test]
fn history_of_many_short_runs_is_a_bounded_number_of_files() {
    let disk = Arc::new(MemDisk::new());
    let logs = || disk.list().unwrap().iter().filter(|name| name.ends_with(".log")).count();
    let options = || Options { history_bytes: 1 << 30, background: false, ..Options::tiny() };
    for n in 0..200 {
        let kv = open(&disk, options());
        kv.commit(batch(n), None).unwrap();
        kv.flush().unwrap();
        kv.close().unwrap();
        assert!(logs() <= 132, "{} log files after {n} starts", logs());
    }
    // What is left is still everything since some commit, and all commits are there.
    let kv = open(&disk, options());
    let snapshot = kv.snapshot();
    assert!((0u64..200).all(|n| snapshot.get(&n.to_be_bytes()).unwrap().is_some()));
    assert!(matches!(kv.history(0), Err(KvError::HistoryLost { .. })));
}

#[test]
fn many_starts_without_a_flush_leave_few_files() {
    let options = || Options { history_bytes: 0, background: false, ..Options::tiny() };
    let disk = Arc::new(MemDisk::new());
    for n in 0..60 {
        let kv = open(&disk, options());
        kv.commit(batch(n), None).unwrap();
        kv.close().unwrap();
    }
    let kv = open(&disk, options());
    let segments = disk.list().unwrap().iter().filter(|name| name.ends_with(".log")).count();
    assert!(segments < 20, "{segments} segments");
    for n in 0..60u64 {
        assert!(kv.snapshot().get(&n.to_be_bytes()).unwrap().is_some(), "{n} is gone");
    }
}
