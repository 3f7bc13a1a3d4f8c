//! Looking keys up one after the other in a sequence of runs: what was found last is where the next search begins.
//!
//! Keys that are looked up in a row tend to lie near each other. As long as a key falls between two entries of the block
//! that is held, neither filter nor index nor cache is asked.

use std::sync::Arc;

use super::{Block, Level};
use crate::Result;
use crate::cache::Use;
use crate::hash::hash64;

pub(crate) struct NearRuns {
    runs: Arc<Level>,
    block: Option<Arc<Block>>,
    /// The entry of the block that was found last, or the one after where it would have been.
    at: usize,
}

impl NearRuns {
    /// Looks into `runs`, which are sorted and do not overlap.
    pub(crate) fn new(runs: Arc<Level>) -> NearRuns {
        NearRuns { runs, block: None, at: 0 }
    }

    /// Moves to the entry of `key`; `false` if there is none. `hash` is kept for whoever looks for the same key next.
    #[inline]
    pub(crate) fn find(&mut self, key: &[u8], hash: &mut Option<u64>) -> Result<bool> {
        if let Some(block) = &self.block {
            let (at, is_exact) = block.search_from(self.at, key);
            if is_exact || (at > 0 && at < block.count()) {
                self.at = at;
                return Ok(is_exact);
            }
        }
        self.find_elsewhere(key, hash)
    }

    fn find_elsewhere(&mut self, key: &[u8], hash: &mut Option<u64>) -> Result<bool> {
        let Some(run) = self.runs.covering(key) else { return Ok(false) };
        if !run.may_contain(*hash.get_or_insert_with(|| hash64(key))) {
            return Ok(false);
        }
        let number = run.find_block(key);
        if number == run.blocks() {
            return Ok(false);
        }
        let block = run.block(number, Use::Get)?;
        let (at, is_exact) = block.search(key);
        // Kept also if the key is not there: its neighbours may be asked for next.
        self.at = at;
        self.block = Some(block);
        Ok(is_exact)
    }

    /// The value of the entry that was found; `None` if the key is deleted.
    #[inline]
    pub(crate) fn value(&self) -> Option<&[u8]> {
        let block = self.block.as_ref()?;
        Some(block.slice(block.entry(self.at).value?))
    }
}
