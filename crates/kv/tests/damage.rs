//! Damaged files: an error that names the place, never a wrong answer.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use espalier_kv::{Batch, Direction, Disk, Kv, KvError, MemDisk, Options, Result, Rng};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Without history: every segment there is one that recovery needs.
fn options() -> Options {
    Options { background: false, history_bytes: 0, ..Options::tiny() }
}

/// A closed database with runs in several levels and commits that are only in the log.
fn build(seed: u64) -> (Arc<MemDisk>, Model) {
    let mut rng = Rng::new(seed);
    let disk = Arc::new(MemDisk::new());
    let (kv, _) = Kv::open(disk.clone(), options()).unwrap();
    let mut model = Model::new();
    for n in 0..400u64 {
        let mut batch = Batch::new();
        for _ in 0..3 {
            let tree = 1 + rng.below(3);
            let key = [tree.to_be_bytes(), rng.below(300).to_be_bytes()].concat();
            let value = vec![rng.next_u64() as u8; rng.below(60) as usize];
            batch.put(&key, &value);
            model.insert(key, value);
        }
        kv.commit(batch, None).unwrap();
        if n % 50 == 0 && n < 350 {
            kv.flush().unwrap();
            while kv.compact_step().unwrap() {}
        }
    }
    kv.close().unwrap();
    (disk, model)
}

fn read_all(disk: &Arc<MemDisk>) -> Result<Model> {
    let (kv, _) = Kv::open(disk.clone(), options())?;
    let snapshot = kv.snapshot();
    let mut scan = snapshot.scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward)?;
    let mut found = Model::new();
    while scan.next()? {
        found.insert(scan.key().to_vec(), scan.value().to_vec());
    }
    for (key, value) in &found {
        assert_eq!(snapshot.get(key)?.as_deref(), Some(&value[..]));
    }
    // What only a reader of the past would look at.
    match kv.verify(|_| true)?.problems.pop() {
        Some(problem) => Err(problem),
        None => Ok(found),
    }
}

fn sizes(disk: &MemDisk) -> Vec<(String, u64)> {
    let names = disk.list().unwrap();
    names
        .into_iter()
        .map(|name| {
            let len = disk.open(&name).unwrap().len().unwrap();
            (name, len)
        })
        .collect()
}

#[test]
fn a_flipped_byte_anywhere_is_an_error_or_changes_nothing() {
    let (disk, model) = build(1);
    assert_eq!(read_all(&disk).unwrap(), model);
    let mut rng = Rng::new(9);
    let mut errors: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for _ in 0..1500 {
        // A fresh copy each time: opening writes.
        let copy = Arc::new(disk.crash(0));
        let files = sizes(&copy);
        let (name, len) = &files[rng.below(files.len() as u64) as usize];
        if *len == 0 {
            continue;
        }
        let offset = rng.below(*len);
        copy.damage(name, offset, 1 << rng.below(8));
        let kind = name.rsplit('.').next().unwrap().to_owned();
        let (tried, noticed) = errors.entry(kind).or_default();
        *tried += 1;
        match read_all(&copy) {
            Ok(found) => assert_eq!(found, model, "{name} at {offset}: a wrong answer"),
            Err(KvError::Corrupt { path, .. }) => {
                assert!(path.ends_with(name), "{name} damaged, {path:?} blamed");
                *noticed += 1;
            }
            Err(other) => panic!("{name} at {offset}: {other}"),
        }
    }
    for (kind, (tried, noticed)) in &errors {
        // Only the marker at the very end of the log, and an unused segment, may go unnoticed.
        assert!(noticed * 10 >= tried * 8, "{kind}: {noticed} of {tried}");
    }
    assert_eq!(errors.len(), 3, "{errors:?}");
}

#[test]
fn a_damaged_commit_in_the_middle_of_the_log_names_its_place() {
    let (disk, _) = build(2);
    let log = sizes(&disk).into_iter().filter(|(name, _)| name.ends_with(".log")).max_by_key(|(_, len)| *len).unwrap();
    disk.damage(&log.0, log.1 / 2, 0x10);
    let error = read_all(&disk).unwrap_err();
    let KvError::Corrupt { path, offset, .. } = &error else {
        panic!("{error}");
    };
    assert!(path.ends_with(&log.0) && *offset <= log.1 / 2);
    assert!(error.to_string().contains("restore"), "{error}");
}

#[test]
fn a_missing_file_is_noticed() {
    let (disk, _) = build(3);
    for (name, len) in sizes(&disk) {
        if len < 100 && name.ends_with(".log") {
            continue;
        }
        let copy = Arc::new(disk.crash(0));
        copy.remove(&name).unwrap();
        let error = read_all(&copy).unwrap_err();
        assert!(matches!(error, KvError::Corrupt { .. } | KvError::Io { .. }), "{name}: {error}");
    }
}

#[test]
fn verify_finds_a_damaged_block_and_counts_the_rest() {
    let (disk, _) = build(4);
    let (kv, _) = Kv::open(disk.clone(), options()).unwrap();
    let clean = kv.verify(|_| true).unwrap();
    assert!(clean.problems.is_empty() && clean.entries > 0);
    let run = sizes(&disk).into_iter().find(|(name, _)| name.ends_with(".run")).unwrap();
    disk.damage(&run.0, 20, 0xff);
    let mut calls = 0;
    let report = kv
        .verify(|progress| {
            calls += 1;
            progress.bytes_done <= progress.bytes_total
        })
        .unwrap();
    assert_eq!(report.problems.len(), 1);
    assert_eq!(report.runs, clean.runs);
    assert!(calls as u64 > report.runs);
    assert!(kv.verify(|_| false).unwrap().is_partial);
}

#[test]
fn a_folder_in_use_says_so() {
    let (disk, _) = build(5);
    let (kv, _) = Kv::open(disk.clone(), options()).unwrap();
    assert!(matches!(Kv::open(disk.clone(), options()), Err(KvError::Locked { .. })));
    kv.close().unwrap();
    assert!(Kv::open(disk, options()).is_ok());
}
