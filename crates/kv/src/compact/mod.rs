//! Compaction: merging runs down the levels, in small steps, so that reads look into few runs
//! and deleted data goes.

mod job;
mod pick;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use job::{Job, Merged};
use pick::Step;

use crate::Result;
use crate::engine::{Engine, Install};
use crate::options::LEVELS_MAX;
use crate::run::Level;
use crate::sync::lock;
use crate::version::{Edit, Superversion, Version};

/// What compaction remembers between steps.
pub(crate) struct Memory {
    /// When which commit was the last one, oldest first: tells how old a tombstone is.
    ages: VecDeque<(Instant, u64)>,
    /// Tombstones up to here are old enough to go.
    old_seq: u64,
}

impl Memory {
    /// No snapshot is older than the start.
    pub(crate) fn new(last_seq: u64) -> Memory {
        Memory { ages: VecDeque::new(), old_seq: last_seq }
    }

    fn note_age(&mut self, engine: &Engine) {
        const SAMPLES_MAX: usize = 1024;
        let (now, seq) = (Instant::now(), engine.last_seq());
        if engine.options.tombstone_retention.is_zero() {
            self.old_seq = seq;
            return;
        }
        if self.ages.len() < SAMPLES_MAX && self.ages.back().is_none_or(|&(_, last)| last < seq) {
            self.ages.push_back((now, seq));
        }
        while let Some(&(at, seq)) = self.ages.front()
            && now.duration_since(at) >= engine.options.tombstone_retention
        {
            self.old_seq = self.old_seq.max(seq);
            self.ages.pop_front();
        }
    }
}

impl Engine {
    /// Does one piece of work; `false` if there is none. An idle engine also merges the few
    /// overlapping runs that a busy one leaves, so that reads find everything in one place.
    pub(crate) fn compact_step(&self, is_idle: bool) -> Result<bool> {
        let mut memory = lock(&self.compacting);
        memory.note_age(self);
        let (dropped, state) = self.dropped_and_state();
        let step = pick::pick(&state.version, &self.options, &dropped, memory.old_seq, is_idle);
        let result = step.and_then(|step| match step {
            None => Ok(false),
            Some(step) => self.run_step(&state.version, step, &dropped, memory.old_seq),
        });
        self.poisoned_by(result)
    }

    /// Merges everything into one level and removes all that is deleted.
    pub(crate) fn compact_all(&self) -> Result<()> {
        self.flush()?;
        let mut memory = lock(&self.compacting);
        memory.note_age(self);
        for level in 0..LEVELS_MAX {
            let (dropped, state) = self.dropped_and_state();
            let version = &state.version;
            let is_deepest = (level + 1..=LEVELS_MAX).all(|l| version.level(l).is_empty());
            if version.level(level).is_empty() || (is_deepest && level > 0) {
                continue;
            }
            let step =
                Step::Merge(Job { upper_level: level, uppers: version.level(level).to_vec(), output_level: level + 1 });
            let result = self.run_step(version, step, &dropped, memory.old_seq);
            self.poisoned_by(result)?;
        }
        loop {
            let (dropped, state) = self.dropped_and_state();
            let step = pick::clean(&state.version, &dropped, memory.old_seq, 0);
            let result = step.and_then(|step| match step {
                None => Ok(false),
                Some(step) => self.run_step(&state.version, step, &dropped, memory.old_seq),
            });
            if !self.poisoned_by(result)? {
                break;
            }
        }
        drop(memory);
        self.bury();
        Ok(())
    }

    /// The drops that are durable (only those may remove anything), and a state that has all
    /// runs with keys from before them. In this order: with an older state a tree whose keys
    /// have just been flushed would look as if none were left.
    fn dropped_and_state(&self) -> (BTreeMap<u64, u64>, Arc<Superversion>) {
        let dropped = lock(&self.manifest).dropped.iter().copied().collect();
        (dropped, self.state())
    }

    /// Lets go of the past that is over its age.
    pub(crate) fn expire_past(&self) -> Result<()> {
        let floor = self.past_floor();
        let state = self.state();
        let is_over = |run: &Arc<Level>| run.iter().all(|run| run.meta.seq_max <= floor);
        if !state.version.past().iter().any(is_over) {
            return Ok(());
        }
        drop(state);
        let result = self.install(Install { floor, ..Install::default() });
        self.poisoned_by(result)
    }

    fn run_step(&self, version: &Version, step: Step, dropped: &BTreeMap<u64, u64>, old_seq: u64) -> Result<bool> {
        let install = match step {
            Step::Remove(runs) => {
                Install { edit: Edit { remove: runs.into_iter().collect(), ..Edit::default() }, ..Install::default() }
            }
            Step::Move(moves) => Install {
                edit: Edit {
                    remove: moves.iter().map(|(_, run)| run.meta.id).collect(),
                    add: moves,
                    ..Edit::default()
                },
                ..Install::default()
            },
            Step::Purge(trees) => {
                // A transaction from before the drop must not write to what is forgotten.
                let seqs = trees.iter().filter_map(|tree| dropped.get(tree));
                Install { forgotten_seq: seqs.copied().max().unwrap_or(0), purged: trees, ..Install::default() }
            }
            Step::Merge(job) => match job.run(self, version, dropped, old_seq)? {
                Merged::Done(install) => install,
                Merged::Stopped => return Ok(false),
            },
        };
        self.install(install)?;
        self.compactions.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}
