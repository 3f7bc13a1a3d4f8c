//! Flushing: the oldest full memtable becomes runs in level 0.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::engine::{Engine, Flushed, Install};
use crate::log;
use crate::memtable::{MemEntry, Memtable};
use crate::options::Options;
use crate::past::PastWriter;
use crate::run::{Run, RunMeta, RunWriter};
use crate::sync::lock;
use crate::version::Edit;
use crate::{KvError, Result, tree};

impl Engine {
    /// Writes the active memtable and everything older to disk; returns when it is done.
    pub(crate) fn flush(&self) -> Result<()> {
        self.poison.check()?;
        let last = {
            let mut committer = lock(&self.committer);
            if committer.writer.table().is_empty() {
                committer.writer.table().id.checked_sub(1)
            } else {
                let id = committer.writer.table().id;
                self.freeze(&mut committer)?;
                Some(id)
            }
        };
        while self.state().frozen.last().is_some_and(|table| Some(table.id) <= last) {
            self.flush_oldest()?;
        }
        Ok(())
    }

    /// Flushes the oldest frozen memtable; `false` if there is none. Any failure poisons the
    /// engine: the table stays in memory and in the log.
    pub(crate) fn flush_oldest(&self) -> Result<bool> {
        let _one_at_a_time = lock(&self.flushing);
        let state = self.state();
        let Some(table) = state.frozen.last() else {
            return Ok(false);
        };
        let start = Instant::now();
        let next = match state.frozen.len() {
            1 => &state.active,
            n => &state.frozen[n - 2],
        };
        let result = self.flush_table(table, next);
        self.poisoned_by(result)?;
        self.throttle.flushed(table.bytes(), start.elapsed());
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.signals.wake_compact();
        let result = self.remove_old_segments();
        self.poisoned_by(result)?;
        Ok(true)
    }

    fn flush_table(&self, table: &Arc<Memtable>, next: &Memtable) -> Result<()> {
        // A drop that is only in the log could be lost while the flush lasts, so only those
        // that are on disk, or become so with this flush, leave keys out.
        let mut dropped: BTreeMap<u64, u64> = lock(&self.manifest).dropped.iter().copied().collect();
        dropped.extend(table.drops());
        let floor = self.past_floor().max(self.state().floor);
        let (metas, past) = self.write_runs(table, &dropped, floor)?;
        // Its segments become history with this flush: a power cut must not tear what recovery will not look at.
        self.log.wait_durable(next.first_lsn)?;
        let mut edit = Edit::default();
        for meta in &metas {
            let run = Run::open(&*self.disk, meta, &self.context)?;
            edit.add.push((0, Arc::new(run)));
        }
        for meta in &past {
            edit.past.push(Arc::new(Run::open(&*self.disk, meta, &self.context)?));
        }
        self.install(Install {
            edit,
            floor,
            flushed: Some(Flushed { table: table.clone(), next_segment: next.first_segment, next_lsn: next.first_lsn }),
            ..Install::default()
        })
    }

    /// One file per large tree, and one for each stretch of small trees between them: large
    /// trees, which mostly grow at the end, can then move down the levels as they are. Versions that are not the newest
    /// of their key go to past runs, the second result.
    fn write_runs(
        &self,
        table: &Memtable,
        dropped: &BTreeMap<u64, u64>,
        floor: u64,
    ) -> Result<(Vec<RunMeta>, Vec<RunMeta>)> {
        let own_file_bytes = self.options.own_file_bytes();
        let is_large = |tree: Option<u64>| {
            let Some(tree) = tree else { return false };
            let lower = tree.to_be_bytes();
            let end = tree::end(tree);
            let upper = end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(&end[..]));
            table.approximate_bytes(Bound::Included(&lower), upper) >= own_file_bytes
        };
        let mut metas = Vec::new();
        let mut open: Option<RunWriter> = None;
        let (mut current, mut is_tree_large) = (None, false);
        let mut past = PastWriter::new(self, floor);
        let mut newer: Option<MemEntry<'_>> = None;
        for entry in table.all_entries() {
            let tree = tree::of(entry.key());
            if tree.and_then(|tree| dropped.get(&tree)).is_some_and(|&seq| entry.seq() <= seq) {
                continue;
            }
            if let Some(newer) = newer.replace(entry).filter(|newer| newer.key() == entry.key()) {
                past.add(entry.key(), entry.seq(), newer.seq(), entry.value())?;
                continue;
            }
            let is_next_tree = current != Some(tree);
            let was_large = is_tree_large;
            if is_next_tree {
                current = Some(tree);
                is_tree_large = is_large(tree);
            }
            let is_cut = is_next_tree && (was_large || is_tree_large);
            if let Some(writer) = open.take_if(|writer| is_cut || writer.bytes() >= self.options.run_bytes) {
                metas.push(writer.finish()?);
            }
            let writer = match &mut open {
                Some(writer) => writer,
                None => open.insert(RunWriter::create(&*self.disk, self.allocate_file_id(), &self.options)?),
            };
            writer.add(entry.key(), entry.seq(), entry.value())?;
        }
        if let Some(writer) = open {
            metas.push(writer.finish()?);
        }
        let past = past.finish()?;
        self.sync_folder()?;
        Ok((metas, past))
    }

    pub(crate) fn sync_folder(&self) -> Result<()> {
        let synced = self.disk.sync_dir();
        synced.map_err(|error| KvError::io(&self.disk.path(""), "sync the folder", error))
    }

    /// Removes log segments whose commits are all in runs and that history is not bound to keep.
    pub(crate) fn remove_old_segments(&self) -> Result<()> {
        let first = lock(&self.manifest).first_segment;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Options { history_bytes, history_age, .. } = self.options;
        for id in self.kept.prune(first, history_bytes, history_age, since.as_secs()) {
            let name = log::file_name(id);
            self.disk.remove(&name).map_err(|error| KvError::io(&self.disk.path(&name), "remove", error))?;
        }
        Ok(())
    }
}
