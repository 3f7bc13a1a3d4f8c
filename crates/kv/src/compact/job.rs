//! One merge: some runs of a level, with what they overlap in the next, into new runs there.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::cache::Use;
use crate::engine::{Engine, Install};
use crate::merge::{Merge, Place, Source};
use crate::past::PastWriter;
use crate::run::{Level, Run, RunCursor, RunMeta, RunWriter, file_name};
use crate::version::{Edit, Version};
use crate::{Direction, Result, tree};

pub(super) struct Job {
    pub(super) upper_level: usize,
    /// In the order of their level. All older runs of level 0 that overlap are among them.
    pub(super) uppers: Vec<Arc<Run>>,
    /// The same level to clean runs where they are, else the next.
    pub(super) output_level: usize,
}

pub(super) enum Merged {
    Done(Install),
    /// The engine is being closed.
    Stopped,
}

/// The runs of the output level within the job's range.
#[derive(Default)]
struct Lowers {
    /// Those that take part.
    runs: Vec<Arc<Run>>,
    /// The first keys of those that only lie between: no key of ours falls into them, so they
    /// stay as they are and the output is cut around them.
    passed: Vec<Box<[u8]>>,
}

/// How many entries between looks at the stop sign.
const ENTRIES_PER_CHECK: usize = 4096;

impl Job {
    pub(super) fn run(
        &self,
        engine: &Engine,
        version: &Version,
        dropped: &BTreeMap<u64, u64>,
        old_seq: u64,
    ) -> Result<Merged> {
        let Lowers { runs: lowers, passed } = self.split_lowers(version)?;
        let mut sources = Vec::new();
        // Runs of level 0 overlap, so each is a source of its own.
        let uppers: Vec<_> = match self.upper_level {
            0 => self.uppers.iter().map(|run| vec![run.clone()]).collect(),
            _ => vec![self.uppers.clone()],
        };
        for runs in uppers {
            let range = 0..runs.len();
            sources.push(Source::Runs(RunCursor::new(Level::new(runs), range, Use::Once)));
        }
        let range = 0..lowers.len();
        let cursor = RunCursor::new(Level::new(lowers.clone()), range, Use::Once);
        sources.push(Source::Runs(cursor));
        let mut merge = Merge::new(sources, Direction::Forward, Bound::Unbounded);
        merge.seek(&Place::First)?;
        let mut output = Output::new(engine, passed);
        let floor = engine.past_floor().max(engine.state().floor);
        let mut past = PastWriter::new(engine, floor);
        let mut forgotten_seq = 0;
        let mut entries = 0;
        while merge.is_valid() {
            entries += 1;
            if entries % ENTRIES_PER_CHECK == 0 && engine.signals.is_stopped() {
                output.discard(past);
                return Ok(Merged::Stopped);
            }
            let (key, seq) = (merge.key(), merge.seq());
            let is_dropped = || {
                let tree = tree::of(key).and_then(|tree| dropped.get(&tree));
                tree.is_some_and(|&at| seq <= at)
            };
            let is_dropped = !dropped.is_empty() && is_dropped();
            if !is_dropped {
                let mut until = seq;
                for older in merge.displaced() {
                    past.add(key, older.seq(), until, older.value())?;
                    until = older.seq();
                }
            }
            if is_dropped {
                // The drop itself keeps being checked until it is purged.
            } else if merge.is_tombstone() && seq <= old_seq && !version.is_covered_below(self.output_level, key) {
                forgotten_seq = forgotten_seq.max(seq);
            } else {
                output.add(key, seq, merge.value())?;
            }
            merge.step()?;
        }
        let mut edit = Edit::default();
        for meta in &past.finish()? {
            edit.past.push(Arc::new(Run::open(&*engine.disk, meta, &engine.context)?));
        }
        let metas = output.finish()?;
        for meta in &metas {
            let run = Run::open(&*engine.disk, meta, &engine.context)?;
            edit.add.push((self.output_level, Arc::new(run)));
        }
        let inputs = self.uppers.iter().chain(&lowers);
        edit.remove = inputs.map(|run| run.meta.id).collect();
        Ok(Merged::Done(Install { edit, forgotten_seq, floor, ..Install::default() }))
    }

    /// Divides the runs below.
    fn split_lowers(&self, version: &Version) -> Result<Lowers> {
        let mut lowers = Lowers::default();
        let is_input = |run: &Arc<Run>| self.uppers.iter().any(|u| u.meta.id == run.meta.id);
        let key_min = self.uppers.iter().map(|run| &run.meta.key_min).min();
        let key_max = self.uppers.iter().map(|run| &run.meta.key_max).max();
        let (Some(key_min), Some(key_max)) = (key_min, key_max) else {
            return Ok(lowers);
        };
        let range = version.overlapping(self.output_level, key_min, key_max);
        for run in &version.level(self.output_level)[range] {
            if is_input(run) {
                continue;
            }
            if self.has_key_within(&run.meta)? {
                lowers.runs.push(run.clone());
            } else {
                lowers.passed.push(run.meta.key_min.clone());
            }
        }
        Ok(lowers)
    }

    fn has_key_within(&self, lower: &RunMeta) -> Result<bool> {
        for run in &self.uppers {
            if !run.meta.overlaps(&lower.key_min, &lower.key_max) {
                continue;
            }
            let mut cursor = RunCursor::new(Level::new(vec![run.clone()]), 0..1, Use::Scan);
            cursor.seek(&lower.key_min)?;
            if cursor.is_valid() && *cursor.key() <= *lower.key_max {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The runs being written.
struct Output<'a> {
    engine: &'a Engine,
    /// First keys of runs that the output must not span, ascending.
    passed: Vec<Box<[u8]>>,
    next_passed: usize,
    open: Option<RunWriter>,
    ids: Vec<u64>,
    done: Vec<RunMeta>,
}

impl<'a> Output<'a> {
    fn new(engine: &'a Engine, passed: Vec<Box<[u8]>>) -> Output<'a> {
        Output { engine, passed, next_passed: 0, open: None, ids: Vec::new(), done: Vec::new() }
    }

    fn add(&mut self, key: &[u8], seq: u64, value: Option<&[u8]>) -> Result<()> {
        let options = &self.engine.options;
        let mut is_cut = false;
        while self.passed.get(self.next_passed).is_some_and(|p| **p < *key) {
            self.next_passed += 1;
            is_cut = true;
        }
        if let Some(writer) = self.open.take_if(|writer| {
            is_cut
                || writer.bytes() >= options.run_bytes
                || (writer.bytes() >= options.own_file_bytes() && tree::of(writer.last_key()) != tree::of(key))
        }) {
            self.done.push(writer.finish()?);
        }
        let writer = match &mut self.open {
            Some(writer) => writer,
            None => {
                let id = self.engine.allocate_file_id();
                self.ids.push(id);
                let writer = RunWriter::create(&*self.engine.disk, id, options)?;
                self.open.insert(writer)
            }
        };
        writer.add(key, seq, value)
    }

    fn finish(mut self) -> Result<Vec<RunMeta>> {
        if let Some(writer) = self.open.take() {
            self.done.push(writer.finish()?);
        }
        self.engine.sync_folder()?;
        Ok(self.done)
    }

    fn discard(self, past: PastWriter<'_>) {
        drop(self.open);
        for id in self.ids.into_iter().chain(past.discard()) {
            // What cannot be removed now is removed as an orphan at the next start.
            drop(self.engine.disk.remove(&file_name(id)));
        }
    }
}
