//! The state that commits, readers and the background share, and how it changes.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::disk::{Disk, DiskLock};
use crate::log::{Kept, Log, Segment};
use crate::manifest::Manifest;
use crate::memtable::{ChunkPool, Memtable, MemtableWriter};
use crate::options::Options;
use crate::past::{self, Times};
use crate::poison::Poison;
use crate::run::{Level, RunContext};
use crate::snapshot::Snapshot;
use crate::sync::{lock, read, wait_for, write};
use crate::throttle::Throttle;
use crate::version::{Edit, Superversion};
use crate::{KvError, Result};

pub(crate) struct Engine {
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) context: RunContext,
    pub(crate) pool: Arc<ChunkPool>,
    pub(crate) poison: Arc<Poison>,
    pub(crate) log: Log,
    /// The log's segments.
    pub(crate) kept: Kept,
    pub(crate) throttle: Throttle,
    /// What new snapshots see. Read-locked for two loads, write-locked for a swap.
    pub(crate) current: RwLock<Arc<Superversion>>,
    /// The last commit that new snapshots see.
    pub(crate) visible: AtomicU64,
    /// Its stamp, or that of one before it.
    pub(crate) visible_stamp: AtomicU64,
    /// When which commit was made, as far back as the past can be read.
    pub(crate) times: Mutex<Times>,
    /// The commit lock.
    pub(crate) committer: Mutex<Committer>,
    /// What is on disk; held while the manifest is replaced.
    pub(crate) manifest: Mutex<Manifest>,
    pub(crate) next_file_id: AtomicU64,
    /// The newest tombstone or dropped tree that is gone without a trace.
    pub(crate) forgotten_seq: AtomicU64,
    /// The next log segment, made ahead of need.
    pub(crate) spare_segment: Mutex<Option<Segment>>,
    /// One flush, one compaction at a time, by whoever asks.
    pub(crate) flushing: Mutex<()>,
    pub(crate) compacting: Mutex<crate::compact::Memory>,
    pub(crate) signals: Signals,
    pub(crate) flushes: AtomicU64,
    pub(crate) compactions: AtomicU64,
    pub(crate) folder_lock: Mutex<Option<DiskLock>>,
}

/// Owned by the commit lock.
pub(crate) struct Committer {
    pub(crate) writer: MemtableWriter,
    pub(crate) last_seq: u64,
}

/// Why a background thread goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    Asked,
    /// Nothing has happened for a while.
    Idle,
    Stopped,
}

/// How threads wake each other.
#[derive(Default)]
pub(crate) struct Signals {
    pending: Mutex<Pending>,
    flush: Condvar,
    compact: Condvar,
    /// A flush or compaction was installed.
    pub(crate) progress: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct Pending {
    flush: bool,
    compact: bool,
}

impl Signals {
    pub(crate) fn wake_flush(&self) {
        lock(&self.pending).flush = true;
        self.flush.notify_one();
    }

    pub(crate) fn wake_compact(&self) {
        lock(&self.pending).compact = true;
        self.compact.notify_one();
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        // Under the lock, so that nobody misses it between looking and sleeping.
        let _pending = lock(&self.pending);
        self.flush.notify_all();
        self.compact.notify_all();
        self.progress.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Sleeps until there is something to flush.
    pub(crate) fn wait_flush(&self) -> Woken {
        let hour = Duration::from_secs(3600);
        self.sleep(&self.flush, hour, |pending| std::mem::take(&mut pending.flush))
    }

    /// Sleeps until something may need compaction, or for a while.
    pub(crate) fn wait_compact(&self, at_most: Duration) -> Woken {
        self.sleep(&self.compact, at_most, |pending| std::mem::take(&mut pending.compact))
    }

    fn sleep(&self, condvar: &Condvar, at_most: Duration, take: impl Fn(&mut Pending) -> bool) -> Woken {
        let mut pending = lock(&self.pending);
        let mut is_asked = take(&mut pending);
        if !self.is_stopped() && !is_asked {
            pending = wait_for(condvar, pending, at_most);
            is_asked = take(&mut pending);
        }
        match (self.is_stopped(), is_asked) {
            (true, _) => Woken::Stopped,
            (false, true) => Woken::Asked,
            (false, false) => Woken::Idle,
        }
    }

    /// Sleeps until the background got something done, at most for a moment.
    pub(crate) fn wait_progress(&self) {
        let pending = lock(&self.pending);
        drop(wait_for(&self.progress, pending, Duration::from_millis(10)));
    }
}

impl Engine {
    pub(crate) fn state(&self) -> Arc<Superversion> {
        read(&self.current).clone()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        // A commit to a newer memtable happens after that memtable was swapped in, which needs
        // the write lock: under the read lock the number belongs to this state.
        let current = read(&self.current);
        // Before the number, so that the number covers it.
        let stamp = self.visible_stamp.load(Ordering::Acquire);
        let seq = self.visible.load(Ordering::Acquire);
        Snapshot { state: current.clone(), seq, stamp, is_past: false }
    }

    /// The database as it was at a time; `None` if that is too long ago.
    pub(crate) fn snapshot_at(&self, stamp: u64) -> Option<Snapshot> {
        let now = self.snapshot();
        let seq = lock(&self.times).seq_at(stamp)?.min(now.seq);
        let is_past = now.state.settled_seq() > seq;
        // By age, too, though it may all be there yet: how long ago one can read is not a matter of luck.
        let floor = now.state.floor.max(self.past_floor());
        (seq >= floor).then_some(Snapshot { seq, stamp, is_past, ..now })
    }

    /// The first commit that the past is to go back to, by age.
    pub(crate) fn past_floor(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = since.as_secs().saturating_sub(self.options.past_age.as_secs());
        if self.options.past_age.is_zero() {
            return self.last_seq();
        }
        // The last commit that was made longer ago.
        lock(&self.times).seq_at((seconds & u64::from(u32::MAX)) << 32).unwrap_or(0)
    }

    pub(crate) fn allocate_file_id(&self) -> u64 {
        self.next_file_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Remembers the error so that later commits fail with it.
    pub(crate) fn poisoned_by<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && !matches!(error, KvError::Closed)
        {
            self.poison.set(error);
        }
        result
    }

    /// Replaces what new snapshots see. The old state is dropped outside the lock.
    pub(crate) fn swap(&self, change: impl FnOnce(&Superversion) -> Superversion) {
        let mut current = write(&self.current);
        let next = Arc::new(change(&current));
        self.throttle.set_frozen(next.frozen.len());
        let old = std::mem::replace(&mut *current, next);
        drop(current);
        drop(old);
    }

    /// Starts a new memtable and log segment. Called under the commit lock.
    pub(crate) fn freeze(&self, committer: &mut Committer) -> Result<()> {
        let segment = {
            // Held while making one, so that ids are used in the order they are given out.
            let mut spare = lock(&self.spare_segment);
            match spare.take() {
                Some(segment) => segment,
                None => {
                    let made = Segment::create(&*self.disk, self.allocate_file_id());
                    self.poisoned_by(made)?
                }
            }
        };
        let first_segment = segment.id;
        let start = self.log.rotate(segment);
        // Before the first commit goes there, so that readers of the history find it.
        self.kept.push(first_segment, start);
        let first_lsn = start.lsn;
        let id = committer.writer.table().id + 1;
        committer.writer = Memtable::create(&self.pool, id, first_segment, first_lsn);
        self.swap(|state| {
            let mut frozen = Vec::with_capacity(state.frozen.len() + 1);
            frozen.push(state.active.clone());
            frozen.extend_from_slice(&state.frozen);
            Superversion { active: committer.writer.table().clone(), frozen, ..state.clone() }
        });
        self.signals.wake_flush();
        Ok(())
    }

    /// Makes the next log segment before it is needed.
    pub(crate) fn prepare_segment(&self) -> Result<()> {
        let mut spare = lock(&self.spare_segment);
        if spare.is_none() {
            *spare = Some(Segment::create(&*self.disk, self.allocate_file_id())?);
        }
        Ok(())
    }

    /// Records how far the log is durable, so that the next start misses nothing of it.
    pub(crate) fn note_durable(&self) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let durable_lsn = self.log.durable_lsn();
        if manifest.durable_lsn < durable_lsn {
            manifest.durable_lsn = durable_lsn;
            manifest.stamp = self.log.stamp();
            manifest.store(&*self.disk)?;
        }
        Ok(())
    }

    /// Makes a change of the runs durable and then visible.
    pub(crate) fn install(&self, install: Install) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let state = self.state();
        let mut past = state.version.past().to_vec();
        past.extend(install.edit.past.iter().map(|run| Level::new(vec![run.clone()])));
        let (past, floor) = past::trim(past, state.floor.max(install.floor), self.options.past_bytes);
        let version = Arc::new(state.version.apply(&install.edit, past));
        drop(state);
        let mut next = manifest.clone();
        next.levels = version.metas();
        next.past = version.past_metas();
        next.floor = floor;
        next.times = {
            let mut times = lock(&self.times);
            times.forget(floor);
            times.clone()
        };
        next.next_file_id = self.next_file_id.load(Ordering::Relaxed);
        next.durable_lsn = self.log.durable_lsn();
        next.stamp = self.log.stamp();
        if let Some(flushed) = &install.flushed {
            next.flushed_seq = flushed.table.seq_max().max(next.flushed_seq);
            next.first_segment = flushed.next_segment;
            next.first_lsn = flushed.next_lsn;
            next.dropped.extend(flushed.table.drops());
        }
        next.forgotten_seq = next.forgotten_seq.max(install.forgotten_seq);
        next.dropped.retain(|(tree, _)| !install.purged.contains(tree));
        next.store(&*self.disk)?;
        self.forgotten_seq.fetch_max(next.forgotten_seq, Ordering::AcqRel);
        *manifest = next;
        let state = self.state();
        for (_, run) in state.version.runs() {
            let id = run.meta.id;
            let is_moved = install.edit.add.iter().any(|(_, added)| added.meta.id == id);
            if install.edit.remove.contains(&id) && !is_moved {
                run.set_obsolete();
            }
        }
        let kept: HashSet<u64> = manifest.past.iter().map(|run| run.id).collect();
        for run in state.version.past().iter().flat_map(|run| run.iter()).chain(&install.edit.past) {
            if !kept.contains(&run.meta.id) {
                run.set_obsolete();
            }
        }
        drop(state);
        self.throttle.set_depth(version.level0_depth());
        self.swap(|state| {
            let mut frozen = state.frozen.clone();
            if let Some(flushed) = &install.flushed {
                frozen.retain(|table| table.id != flushed.table.id);
            }
            let mut dropped = state.dropped.clone();
            if !install.purged.is_empty() {
                let kept = dropped.iter().filter(|(t, _)| !install.purged.contains(t));
                dropped = Arc::new(kept.map(|(&t, &s)| (t, s)).collect::<BTreeMap<_, _>>());
            }
            Superversion { active: state.active.clone(), frozen, version, dropped, floor }
        });
        drop(manifest);
        self.signals.progress.notify_all();
        Ok(())
    }
}

/// What a flush or compaction changes.
#[derive(Default)]
pub(crate) struct Install {
    pub(crate) edit: Edit,
    pub(crate) flushed: Option<Flushed>,
    /// The newest tombstone that was left out.
    pub(crate) forgotten_seq: u64,
    /// Dropped trees without any key left.
    pub(crate) purged: Vec<u64>,
    /// Versions that were displaced up to this commit have been left out.
    pub(crate) floor: u64,
}

/// The memtable that is now in the runs, and where the log is needed from.
pub(crate) struct Flushed {
    pub(crate) table: Arc<Memtable>,
    pub(crate) next_segment: u64,
    pub(crate) next_lsn: u64,
}
