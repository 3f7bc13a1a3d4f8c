//! A real process on a real folder, killed with -9 while it flushes and compacts: every commit
//! that it had reported as durable is there afterwards, and none is there in part.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use espalier_kv::{Batch, Direction, Kv, Options, RealDisk, Recovered, Rng};

const FOLDER: &str = "ESPALIER_KV_KILL_FOLDER";
const KEYS: u64 = 3;

fn open(folder: &Path) -> (Kv, Recovered) {
    let options = Options { memtable_bytes: 64 << 10, run_bytes: 32 << 10, level1_bytes: 64 << 10, ..Options::tiny() };
    Kv::open(Arc::new(RealDisk::new(folder).unwrap()), options).unwrap()
}

fn key(tree: u64, n: u64) -> Vec<u8> {
    [tree.to_be_bytes(), n.to_be_bytes()].concat()
}

/// Commit n puts one key into each of several trees and takes out those of commit n - 100.
fn commit(kv: &Kv, n: u64) -> espalier_kv::Commit {
    let mut batch = Batch::new();
    for tree in 1..=KEYS {
        batch.put(&key(tree, n), &[n as u8; 200]);
        if let Some(old) = n.checked_sub(100) {
            batch.delete(&key(tree, old));
        }
    }
    kv.commit(batch, None).unwrap()
}

/// What the killed process does; in the test run proper it has nothing to do.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let (kv, recovered) = open(Path::new(&folder));
    for n in recovered.seq + 1.. {
        let done = commit(&kv, n);
        if n % 4 == 0 {
            kv.wait_durable(&done).unwrap();
            // A whole line in one write, so that the other side reads all of it or nothing.
            std::io::stderr().write_all(format!("durable {n}\n").as_bytes()).unwrap();
        }
    }
}

fn check(kv: &Kv, seq: u64) {
    let snapshot = kv.snapshot();
    let mut scan = snapshot.scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward).unwrap();
    let mut found = Vec::new();
    while scan.next().unwrap() {
        found.push(scan.key().to_vec());
    }
    let first = seq.saturating_sub(99).max(1);
    let expected: Vec<_> = (1..=KEYS).flat_map(|tree| (first..=seq).map(move |n| key(tree, n))).collect();
    assert_eq!(found, expected, "after commit {seq}");
}

#[test]
fn killed_again_and_again_nothing_durable_is_lost() {
    let folder: PathBuf = std::env::temp_dir().join(format!("espalier-kv-kill-{}", std::process::id()));
    let mut rng = Rng::new(std::process::id().into());
    let mut total = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(FOLDER, &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        let reader = std::thread::spawn(move || {
            let durable =
                lines.lines().map_while(Result::ok).filter_map(|line| line.strip_prefix("durable ")?.parse().ok());
            durable.last().unwrap_or(0u64)
        });
        std::thread::sleep(Duration::from_millis(80 + rng.below(250)));
        child.kill().unwrap();
        child.wait().unwrap();
        let durable = reader.join().unwrap();
        let (kv, recovered) = open(&folder);
        assert!(recovered.seq >= durable, "round {round}: {} of {durable}", recovered.seq);
        total = recovered.seq;
        check(&kv, recovered.seq);
        let report = kv.verify(|_| true).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        kv.close().unwrap();
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(total > 100, "only {total} commits in all rounds");
}
