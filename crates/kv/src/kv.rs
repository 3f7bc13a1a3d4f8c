//! `Kv`, the handle through which everything is done.

use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::batch::Batch;
use crate::commit::Commit;
use crate::disk::Disk;
use crate::engine::Engine;
use crate::error::CommitError;
use crate::log::History;
use crate::options::Options;
use crate::recover::{self, Recovered};
use crate::snapshot::Snapshot;
use crate::stats::Stats;
use crate::sync::lock;
use crate::verify::{VerifyProgress, VerifyReport};
use crate::{Result, background};

/// An open database. Cheap to clone; the last clone to go closes it.
#[derive(Clone)]
pub struct Kv {
    handle: Arc<Handle>,
}

struct Handle {
    engine: Arc<Engine>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Kv {
    /// Opens the folder behind `disk`, or makes a new database in it.
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<(Kv, Recovered)> {
        let (engine, recovered) = recover::open(disk, options)?;
        let engine = Arc::new(engine);
        let kv = Kv { handle: Arc::new(Handle { engine: engine.clone(), threads: Mutex::default() }) };
        if engine.options.background {
            *lock(&kv.handle.threads) = background::start(&engine)?;
        }
        Ok((kv, recovered))
    }

    /// The database as it is now.
    pub fn snapshot(&self) -> Snapshot {
        self.handle.engine.snapshot()
    }

    /// The database as it was at a time, which is the stamp of a commit or any between two. `None` if that is longer ago
    /// than `Options::past_age`, or than what fits into `Options::past_bytes`. A dropped tree is not there any more.
    pub fn snapshot_at(&self, stamp: u64) -> Option<Snapshot> {
        self.handle.engine.snapshot_at(stamp)
    }

    /// All of the batch or nothing, visible to later snapshots on return; durable after
    /// `wait_durable`. With `read_at`, fails with `Conflict` if a key that the batch writes
    /// (except by `put_new`) or guards has changed since that snapshot; without, the last
    /// writer wins.
    pub fn commit(
        &self,
        batch: impl std::borrow::Borrow<Batch>,
        read_at: Option<&Snapshot>,
    ) -> Result<Commit, CommitError> {
        self.handle.engine.commit(batch.borrow(), read_at)
    }

    /// Whether this key has changed since the snapshot, so that a commit which writes it would conflict.
    pub fn is_changed(&self, key: &[u8], since: &Snapshot) -> Result<bool> {
        self.handle.engine.is_changed(key, since)
    }

    /// Returns when every commit that any snapshot has seen would survive a power cut.
    pub fn wait_all_durable(&self) -> Result<()> {
        let log = &self.handle.engine.log;
        log.wait_durable(log.commit_lsn())
    }

    /// Returns when the commit, and all before it, would survive a power cut.
    pub fn wait_durable(&self, commit: &Commit) -> Result<()> {
        self.handle.engine.log.wait_durable(commit.lsn)
    }

    /// Reads every durable commit with a stamp greater than `after`, in order. Fails with `HistoryLost` if one of them
    /// may be gone already, and so does the reader when it falls behind what is kept.
    pub fn history(&self, after: u64) -> Result<History> {
        History::open(self.handle.engine.clone(), after)
    }

    /// Every commit up to this stamp would survive a power cut.
    pub fn durable_stamp(&self) -> u64 {
        self.handle.engine.log.durable().stamp
    }

    /// The stamp of the last commit.
    pub fn stamp(&self) -> u64 {
        self.handle.engine.visible_stamp.load(std::sync::atomic::Ordering::Acquire)
    }

    /// `listener` is called whenever commits have become durable, on a thread that others wait for: it must be quick
    /// and must not call back. It takes the place of the one before.
    pub fn on_durable(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.handle.engine.log.listen(Arc::new(listener));
    }

    /// Removes every key of a tree: see `Batch::drop_tree`.
    pub fn drop_tree(&self, tree: u64) -> Result<Commit, CommitError> {
        let mut batch = Batch::new();
        batch.drop_tree(tree);
        self.commit(batch, None)
    }

    /// Writes everything in memory to runs.
    pub fn flush(&self) -> Result<()> {
        self.handle.engine.flush()
    }

    /// Merges all runs and removes what is deleted. Long for a large database; reads and
    /// writes go on meanwhile.
    pub fn compact_all(&self) -> Result<()> {
        self.handle.engine.compact_all()
    }

    /// Does one piece of compaction if any is due. For tests that run without background.
    pub fn compact_step(&self) -> Result<bool> {
        let result = self.handle.engine.compact_step(false);
        self.handle.engine.bury();
        result
    }

    pub fn stats(&self) -> Stats {
        Stats::collect(&self.handle.engine)
    }

    /// Bytes stored between two bounds, to the nearest block.
    pub fn approximate_bytes(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
        self.snapshot().approximate_bytes(lower, upper)
    }

    /// Reads every block of every run and checks it. `progress` is called now and then and
    /// stops the check by returning `false`.
    pub fn verify(&self, progress: impl FnMut(VerifyProgress) -> bool) -> Result<VerifyReport> {
        crate::verify::verify(&self.snapshot(), progress)
    }

    /// Makes every commit durable, stops the background and gives the folder free. Commits
    /// fail afterwards; snapshots go on working. Done by itself when the last clone goes.
    pub fn close(&self) -> Result<()> {
        self.handle.close()
    }
}

impl Handle {
    fn close(&self) -> Result<()> {
        let threads = std::mem::take(&mut *lock(&self.threads));
        self.engine.signals.stop();
        let result = self.engine.log.close();
        for thread in threads {
            // A thread that panicked has nothing more to say.
            drop(thread.join());
        }
        self.engine.bury();
        let result = result.and_then(|()| self.engine.note_durable());
        self.engine.unlock();
        result
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Nobody is left to tell; what was waited for is durable already.
        drop(self.close());
    }
}
