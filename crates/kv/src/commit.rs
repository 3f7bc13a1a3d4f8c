//! Committing a batch: check, number, log, memtable, visible.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::{Batch, Op};
use crate::engine::{Committer, Engine};
use crate::error::{CommitError, KvError};
use crate::hash::hash64;
use crate::log::Place;
use crate::memtable::Memtable;
use crate::options::{BATCH_BYTES_MAX, FROZEN_TABLES_MAX};
use crate::snapshot::Snapshot;
use crate::sync::lock;
use crate::version::Superversion;
use crate::{Result, tree};

/// A commit that happened: its number, and where the log must be durable for it to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    pub seq: u64,
    pub lsn: u64,
    /// Its time: seconds in the high half, an increment in the low half. Later commits have greater ones, also after a
    /// restart.
    pub stamp: u64,
}

impl Engine {
    pub(crate) fn commit(&self, batch: &Batch, read_at: Option<&Snapshot>) -> Result<Commit, CommitError> {
        batch.check_limits()?;
        let bytes = batch.len_bytes();
        if bytes > BATCH_BYTES_MAX {
            return Err(CommitError::Kv(KvError::TooLarge { what: "a batch", bytes, bytes_max: BATCH_BYTES_MAX }));
        }
        self.poison.check()?;
        self.wait_for_room(bytes)?;
        let payload_crc = batch.checksum();
        let commit = loop {
            // Runs and frozen tables do not change, so they are searched before taking the
            // lock; what came after is searched under it.
            let checked = match read_at {
                None => None,
                Some(snapshot) => Some(self.check_settled(batch, snapshot)?),
            };
            let mut committer = lock(&self.committer);
            if let (Some(snapshot), Some(checked)) = (read_at, &checked)
                && !self.check_recent(batch, snapshot, checked, &committer)?
            {
                continue;
            }
            break self.apply(batch, payload_crc, &mut committer)?;
        };
        self.log.relieve()?;
        Ok(commit)
    }

    /// Whether a commit that the snapshot does not see wrote this key. May say so once too often, after a deletion was
    /// compacted away.
    pub(crate) fn is_changed(&self, key: &[u8], snapshot: &Snapshot) -> Result<bool> {
        if self.visible.load(Ordering::Acquire) <= snapshot.seq {
            return Ok(false);
        }
        let state = self.state();
        let is_forgotten = snapshot.seq < self.forgotten_seq.load(Ordering::Acquire);
        if (is_forgotten || state.active.seq_max() > snapshot.seq)
            && let Some(seq) = state.active.newest(key)
        {
            return Ok(seq > snapshot.seq);
        }
        if Arc::ptr_eq(&state.active, &snapshot.state.active) && !is_forgotten && !snapshot.is_past {
            return Ok(false);
        }
        let newest = newest_settled(&state, key, snapshot.seq, is_forgotten)?;
        Ok(newest.map_or(is_forgotten, |seq| seq > snapshot.seq))
    }

    /// Paces the commit, and holds it back while too much is not yet on disk.
    fn wait_for_room(&self, bytes: usize) -> Result<()> {
        self.throttle.pace(bytes);
        while self.state().frozen.len() >= FROZEN_TABLES_MAX {
            self.poison.check()?;
            if self.signals.is_stopped() {
                return Err(KvError::Closed);
            }
            if self.options.background {
                self.signals.wait_progress();
            } else {
                self.flush_oldest()?;
            }
        }
        Ok(())
    }

    /// Searches everything older than the active memtable for versions that the snapshot does
    /// not see. Returns the memtable up to which (exclusively) it has looked.
    fn check_settled(&self, batch: &Batch, snapshot: &Snapshot) -> Result<Arc<Memtable>, CommitError> {
        let state = self.state();
        let active = state.active.clone();
        // After the state: what that state no longer holds is already counted as forgotten.
        let forgotten_seq = self.forgotten_seq.load(Ordering::Acquire);
        let is_forgotten = snapshot.seq < forgotten_seq;
        if Arc::ptr_eq(&active, &snapshot.state.active) && !is_forgotten && !snapshot.is_past {
            return Ok(active);
        }
        for key in checked_keys(batch) {
            let newest = newest_settled(&state, key, snapshot.seq, is_forgotten)?;
            let is_conflict = match newest {
                Some(seq) => seq > snapshot.seq,
                // A deletion may have been compacted away, unless a newer version shows up in
                // the active table. Better to retry once than to miss it.
                None => is_forgotten && active.newest(key).is_none(),
            };
            if is_conflict {
                return Err(CommitError::Conflict { key: key.into() });
            }
        }
        Ok(active)
    }

    /// Searches the memtables from `checked` on, under the commit lock. `false` if some of them
    /// have been flushed meanwhile, so that the search must start over.
    fn check_recent(
        &self,
        batch: &Batch,
        snapshot: &Snapshot,
        checked: &Arc<Memtable>,
        committer: &Committer,
    ) -> Result<bool, CommitError> {
        let active = committer.writer.table();
        let conflicts = |tables: &[&Arc<Memtable>]| {
            let recent = |table: &&&Arc<Memtable>| table.seq_max() > snapshot.seq;
            let tables: Vec<_> = tables.iter().filter(recent).collect();
            if tables.is_empty() {
                return None;
            }
            checked_keys(batch).find(|key| {
                let newest = |table: &&&&Arc<Memtable>| table.newest(key);
                let mut versions = tables.iter().filter_map(|table| newest(&table));
                versions.any(|seq| seq > snapshot.seq)
            })
        };
        let conflict = if active.id == checked.id {
            conflicts(&[active])
        } else {
            let state = self.state();
            let between: Vec<_> = state.tables().filter(|table| table.id > checked.id).collect();
            if between.len() as u64 != active.id - checked.id {
                return Ok(false);
            }
            let mut tables = between;
            tables.push(checked);
            conflicts(&tables)
        };
        match conflict {
            Some(key) => Err(CommitError::Conflict { key: key.into() }),
            None => Ok(true),
        }
    }

    /// The commit itself, under the commit lock.
    fn apply(&self, batch: &Batch, payload_crc: u32, committer: &mut Committer) -> Result<Commit, CommitError> {
        if batch.is_empty() {
            // Guards only: nothing to write, nothing to wait for.
            return Ok(Commit { seq: committer.last_seq, lsn: 0, stamp: self.log.stamp() });
        }
        self.poison.check()?;
        let state = self.state();
        if !state.dropped.is_empty()
            && let Some(key) = dropped_key(batch, &state.dropped)
        {
            return Err(CommitError::Conflict { key: key.into() });
        }
        if committer.writer.table().bytes() >= self.options.memtable_bytes {
            self.freeze(committer)?;
        }
        let seq = committer.last_seq + 1;
        let Place { lsn, stamp } = self.log.append(seq, batch.payload(), batch.noted(), payload_crc)?;
        committer.last_seq = seq;
        // Before the number is visible: whoever can name the time finds the commit.
        lock(&self.times).note(stamp, seq);
        insert(batch, seq, committer);
        if batch.has_drops() {
            // Before the number is visible: a snapshot that sees it must see the drop.
            let table = committer.writer.table().drops();
            let drops = table.into_iter().filter(|&(_, at)| at == seq);
            self.swap(|state| {
                let mut dropped = (*state.dropped).clone();
                for (tree, seq) in drops {
                    // Dropped twice: it has been gone since the first time.
                    dropped.entry(tree).or_insert(seq);
                }
                Superversion { dropped: Arc::new(dropped), ..state.clone() }
            });
        }
        self.visible.store(seq, Ordering::Release);
        // After the number: a snapshot never claims a commit that it does not see.
        self.visible_stamp.store(stamp, Ordering::Release);
        Ok(Commit { seq, lsn, stamp })
    }
}

/// Puts a batch's operations into the memtable.
fn insert(batch: &Batch, seq: u64, committer: &mut Committer) {
    // A batch decodes what it encoded itself.
    for op in batch.ops().flatten() {
        let writer = &mut committer.writer;
        match op {
            Op::Put { key, value, .. } => drop(writer.insert(key, seq, Some(value))),
            Op::Delete { key } => drop(writer.insert(key, seq, None)),
            Op::DropTree { tree } => writer.drop_tree(tree, seq),
        }
    }
}

/// The keys that must not have changed.
fn checked_keys(batch: &Batch) -> impl Iterator<Item = &[u8]> {
    let written = batch.ops().filter_map(|op| match op {
        Ok(Op::Put { key, new: false, .. }) => Some(key),
        Ok(Op::Delete { key }) => Some(key),
        _ => None,
    });
    written.chain(batch.guards().iter().map(|key| &**key))
}

/// A key of the batch whose tree is dropped. Checked even without a snapshot, and for fresh
/// keys: a write to a tree that is gone would be acknowledged and never seen.
fn dropped_key<'a>(batch: &'a Batch, dropped: &BTreeMap<u64, u64>) -> Option<&'a [u8]> {
    let is_dropped = |key: &[u8]| tree::of(key).is_some_and(|tree| dropped.contains_key(&tree));
    let written = batch.ops().find_map(|op| match op {
        Ok(Op::Put { key, .. } | Op::Delete { key }) if is_dropped(key) => Some(key),
        _ => None,
    });
    written.or_else(|| {
        let guards = batch.guards().iter().map(|key| &**key);
        guards.into_iter().find(|key| is_dropped(key))
    })
}

/// The newest version of `key` in frozen tables and runs. Unless `all`, only those with
/// commits after `since` are searched.
fn newest_settled(state: &Superversion, key: &[u8], since: u64, all: bool) -> Result<Option<u64>> {
    for table in &state.frozen {
        if (all || table.seq_max() > since)
            && let Some(seq) = table.newest(key)
        {
            return Ok(Some(seq));
        }
    }
    let since = if all { 0 } else { since };
    let found = state.version.get(key, hash64(key), since)?;
    Ok(found.map(|found| found.seq))
}
