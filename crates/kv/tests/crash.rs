//! Power cuts at arbitrary operations: after reopening, the database holds a prefix of the
//! commits, whole batches only, with at least everything that was waited for.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use espalier_kv::{Batch, Direction, Disk, Fault, FaultyDisk, Kv, KvError, MemDisk, Options, Recovered, Rng};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// One commit: keys put or deleted, and perhaps a tree dropped.
#[derive(Clone, Default)]
struct Change {
    writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    dropped: Option<u64>,
}

impl Change {
    fn random(rng: &mut Rng, trees: &mut [u64; 3], next_tree: &mut u64) -> Change {
        let mut change = Change::default();
        if rng.below(40) == 0 {
            let at = rng.below(3) as usize;
            change.dropped = Some(std::mem::replace(&mut trees[at], *next_tree));
            *next_tree += 1;
        }
        for _ in 0..1 + rng.below(6) {
            let tree = trees[rng.below(3) as usize];
            let key = [tree.to_be_bytes().to_vec(), rng.below(200).to_be_bytes().to_vec()].concat();
            let value = (rng.below(5) > 0).then(|| {
                let byte = rng.next_u64() as u8;
                vec![byte; rng.below(120) as usize]
            });
            change.writes.push((key, value));
        }
        change
    }

    fn batch(&self) -> Batch {
        let mut batch = Batch::new();
        for (key, value) in &self.writes {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        if let Some(tree) = self.dropped {
            batch.drop_tree(tree);
        }
        batch
    }

    fn apply(&self, model: &mut Model) {
        for (key, value) in &self.writes {
            match value {
                Some(value) => model.insert(key.clone(), value.clone()),
                None => model.remove(key),
            };
        }
        if let Some(tree) = self.dropped {
            model.retain(|key, _| !key.starts_with(&tree.to_be_bytes()));
        }
    }
}

fn contents(kv: &Kv) -> Model {
    let mut scan = kv.snapshot().scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward).unwrap();
    let mut model = Model::new();
    while scan.next().unwrap() {
        model.insert(scan.key().to_vec(), scan.value().to_vec());
    }
    model
}

/// Writes until the disk fails; returns the last commit that was waited for.
fn write_until_failure(
    kv: &Kv,
    rng: &mut Rng,
    history: &mut Vec<Change>,
    trees: &mut [u64; 3],
    next_tree: &mut u64,
) -> u64 {
    let mut durable = 0;
    for _ in 0..2000 {
        let change = Change::random(rng, trees, next_tree);
        // Pushed first: a commit that fails may still be in the log.
        history.push(change.clone());
        let Ok(commit) = kv.commit(change.batch(), None) else {
            break;
        };
        assert_eq!(commit.seq, history.len() as u64);
        if rng.below(8) == 0 {
            match kv.wait_durable(&commit) {
                Ok(()) => durable = commit.seq,
                Err(_) => break,
            }
        }
        let failed = match rng.below(60) {
            0 => kv.flush().is_err(),
            1 => kv.compact_step().is_err(),
            2 => kv.compact_all().is_err(),
            _ => false,
        };
        if failed {
            break;
        }
    }
    durable
}

fn reopen(disk: &Arc<MemDisk>, options: &Options) -> (Kv, Recovered) {
    Kv::open(disk.clone(), options.clone()).unwrap()
}

#[test]
fn a_power_cut_leaves_a_prefix_with_all_that_was_waited_for() {
    let (mut crashes, mut torn, mut lost, mut failed_opens) = (0, 0, 0, 0);
    for seed in 0..80 {
        let mut rng = Rng::new(seed);
        let options = Options { background: rng.below(2) == 0, ..Options::tiny() };
        let mut disk = Arc::new(MemDisk::new());
        let mut history: Vec<Change> = Vec::new();
        let (mut trees, mut next_tree) = ([1, 2, 3], 4);
        let mut durable_before = 0;
        for round in 0..4 {
            let fault = match rng.below(3) {
                0 => Fault::ShortWrite,
                _ => Fault::Forever,
            };
            // Now and then early enough to hit the opening itself.
            let span = if rng.below(6) == 0 { 8 } else { 600 };
            let faulty = FaultyDisk::new(disk.clone(), fault, rng.below(span));
            let opened = Kv::open(Arc::new(faulty), options.clone());
            let mut durable = durable_before;
            match opened {
                Ok((kv, _)) => {
                    let reached = write_until_failure(&kv, &mut rng, &mut history, &mut trees, &mut next_tree);
                    durable = durable.max(reached);
                }
                Err(KvError::Io { .. }) => failed_opens += 1,
                Err(error) => panic!("seed {seed} round {round}: {error}"),
            }
            disk = Arc::new(disk.crash(rng.next_u64()));
            crashes += 1;
            let (kv, recovered) = reopen(&disk, &options);
            let seq = recovered.seq;
            assert!(
                durable <= seq && seq <= history.len() as u64,
                "seed {seed} round {round}: {durable} durable, {seq} recovered, {} written",
                history.len()
            );
            torn += u64::from(recovered.torn_tail_bytes > 0);
            lost += history.len() as u64 - seq;
            history.truncate(seq as usize);
            let mut model = Model::new();
            history.iter().for_each(|change| change.apply(&mut model));
            let found = contents(&kv);
            let is_wrong = |key: &&Vec<u8>| found.get(*key) != model.get(*key);
            let wrong: BTreeSet<_> = found.keys().chain(model.keys()).filter(is_wrong).collect();
            assert!(wrong.is_empty(), "seed {seed} round {round} after {seq}: {wrong:?}");
            // What was recovered is durable from now on.
            durable_before = seq;
            let report = kv.verify(|_| true).unwrap();
            assert!(report.problems.is_empty(), "{:?}", report.problems);
            kv.close().unwrap();
        }
    }
    // The test must have met what it is about.
    assert!(crashes >= 300, "{crashes} crashes");
    assert!(torn >= 10, "{torn} torn tails");
    assert!(lost >= 100, "{lost} commits not waited for were lost");
    assert!(failed_opens >= 3, "{failed_opens} failed opens");
}

#[test]
fn orphans_of_an_interrupted_flush_are_removed() {
    let disk = Arc::new(MemDisk::new());
    let (kv, _) = reopen(&disk, &Options::tiny());
    kv.close().unwrap();
    disk.create("00000000000000aa.run").unwrap();
    disk.create("MANIFEST.tmp").unwrap();
    let (kv, recovered) = reopen(&disk, &Options::tiny());
    assert_eq!(recovered.orphan_files, 2);
    assert!(disk.open("00000000000000aa.run").is_err());
    // Ids of removed files are not given out again.
    let mut batch = Batch::new();
    batch.put(b"key", b"value");
    kv.commit(batch, None).unwrap();
    kv.flush().unwrap();
    let names = disk.list().unwrap();
    assert!(names.iter().any(|n| n.ends_with(".run") && **n > *"00000000000000aa.run"));
}

#[test]
fn after_a_failed_sync_nothing_is_accepted() {
    let disk = Arc::new(FaultyDisk::new(Arc::new(MemDisk::new()), Fault::Once, u64::MAX));
    let options = Options { background: false, ..Options::tiny() };
    let (kv, _) = Kv::open(disk.clone(), options).unwrap();
    let mut batch = Batch::new();
    batch.put(b"a", b"1");
    let commit = kv.commit(batch.clone(), None).unwrap();
    disk.fail_next();
    assert!(matches!(kv.wait_durable(&commit), Err(KvError::Io { .. })));
    // The disk works again, but nobody knows what it holds.
    assert!(matches!(kv.wait_durable(&commit), Err(KvError::Poisoned { .. })));
    let error = kv.commit(batch, None).unwrap_err();
    assert!(error.to_string().contains("injected failure"), "{error}");
    assert!(kv.stats().is_poisoned);
    assert_eq!(&*kv.snapshot().get(b"a").unwrap().unwrap(), b"1", "readable");
}

#[test]
fn a_kill_of_the_process_loses_nothing_that_was_written_out() {
    let disk = Arc::new(MemDisk::new());
    let (kv, _) = reopen(&disk, &Options::tiny());
    for n in 0..50u64 {
        let mut batch = Batch::new();
        batch.put(&n.to_be_bytes(), b"v");
        kv.commit(batch, None).unwrap();
    }
    // Nobody waits, but the background hands everything to the operating system and syncs it.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while disk.crash(1).open("MANIFEST").is_err() || kv.stats().log_syncs == 0 {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let after = Arc::new(disk.crash(7));
    let (again, recovered) = reopen(&after, &Options::tiny());
    assert_eq!(recovered.seq, 50);
    assert_eq!(contents(&again).len(), 50);
}
