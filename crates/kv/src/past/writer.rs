//! Writes past runs, beside the runs that a flush or compaction makes.

use super::VersionKey;
use crate::engine::Engine;
use crate::hash::hash64;
use crate::run::{RunMeta, RunWriter};
use crate::{Result, tree};

pub(crate) struct PastWriter<'a> {
    engine: &'a Engine,
    /// What was displaced by a commit up to here nobody can ask for.
    floor: u64,
    open: Option<RunWriter>,
    /// The key whose version came last: it is in the filter already.
    last: Vec<u8>,
    version: VersionKey,
    ids: Vec<u64>,
    done: Vec<RunMeta>,
}

impl<'a> PastWriter<'a> {
    pub(crate) fn new(engine: &'a Engine, floor: u64) -> PastWriter<'a> {
        PastWriter {
            engine,
            floor,
            open: None,
            last: Vec::new(),
            version: VersionKey::default(),
            ids: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Takes a version that commit `until` displaced, if anybody can still ask for it. Keys come in order, the versions
    /// of a key newest first.
    pub(crate) fn add(&mut self, key: &[u8], seq: u64, until: u64, value: Option<&[u8]>) -> Result<()> {
        // A batch that wrote a key twice has displaced its own version, which nobody has seen.
        if until <= self.floor || seq >= until {
            return Ok(());
        }
        let options = &self.engine.options;
        if tree::of(key).is_some_and(|tree| options.past_less_trees.contains(&tree)) {
            return Ok(());
        }
        if let Some(writer) = self.open.take_if(|writer| writer.bytes() >= options.run_bytes) {
            self.done.push(writer.finish()?);
        }
        let is_new = self.open.is_none() || *self.last != *key;
        let writer = match &mut self.open {
            Some(writer) => writer,
            None => {
                let id = self.engine.allocate_file_id();
                self.ids.push(id);
                self.open.insert(RunWriter::create(&*self.engine.disk, id, options)?)
            }
        };
        if is_new {
            self.last.clear();
            self.last.extend_from_slice(key);
        }
        writer.add_hashed(self.version.set(key, seq), is_new.then(|| hash64(key)), until, value)
    }

    /// The runs; the folder is synced by the caller.
    pub(crate) fn finish(mut self) -> Result<Vec<RunMeta>> {
        if let Some(writer) = self.open.take() {
            self.done.push(writer.finish()?);
        }
        Ok(self.done)
    }

    /// The files, of which nothing is wanted any more.
    pub(crate) fn discard(self) -> Vec<u64> {
        self.ids
    }
}
