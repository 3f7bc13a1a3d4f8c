//! Cursors for a reader of the past.

use std::sync::Arc;

use super::{VersionKey, split};
use crate::Result;
use crate::cache::Use;
use crate::run::{Found, Level, RunCursor};

/// So many versions of a key are passed one by one; a key with more is left by a search.
const STEPS_MAX: usize = 8;

/// A position in runs of the present that passes over what is too new.
pub(crate) struct AsOf {
    pub(crate) cursor: RunCursor,
    pub(crate) seq: u64,
}

impl AsOf {
    fn forward(&mut self) -> Result<()> {
        while self.cursor.is_valid() && self.cursor.seq() > self.seq {
            self.cursor.next()?;
        }
        Ok(())
    }

    fn backward(&mut self) -> Result<()> {
        while self.cursor.is_valid() && self.cursor.seq() > self.seq {
            self.cursor.prev()?;
        }
        Ok(())
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        self.cursor.first()?;
        self.forward()
    }

    pub(crate) fn last(&mut self) -> Result<()> {
        self.cursor.last()?;
        self.backward()
    }

    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.cursor.seek(key)?;
        self.forward()
    }

    pub(crate) fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        self.cursor.seek_back(key, inclusive)?;
        self.backward()
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        self.cursor.next()?;
        self.forward()
    }

    pub(crate) fn prev(&mut self) -> Result<()> {
        self.cursor.prev()?;
        self.backward()
    }
}

/// A position in a past run: of each key the version that was the newest at `at`, if the run has it.
pub(crate) struct PastCursor {
    pub(crate) cursor: RunCursor,
    at: u64,
    /// Of the version under the cursor.
    key: Vec<u8>,
    seq: u64,
    version: VersionKey,
}

impl PastCursor {
    pub(crate) fn new(run: Arc<Level>, at: u64, usage: Use) -> PastCursor {
        let cursor = RunCursor::new(run, 0..1, usage);
        PastCursor { cursor, at, key: Vec::new(), seq: 0, version: VersionKey::default() }
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.cursor.is_valid()
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The commit that wrote the version.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        self.cursor.first()?;
        self.forward()
    }

    pub(crate) fn last(&mut self) -> Result<()> {
        self.cursor.last()?;
        self.backward()
    }

    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.cursor.seek(self.version.set(key, self.at))?;
        self.forward()
    }

    pub(crate) fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        if inclusive && self.find(key)? {
            return Ok(());
        }
        self.cursor.seek_back(self.version.set_start(key), false)?;
        self.backward()
    }

    /// What is under the cursor.
    pub(crate) fn found(&self) -> Option<Found> {
        self.cursor.found().map(|found| Found { seq: self.seq, ..found })
    }

    /// To the version of exactly this key; `false`, and nowhere in particular, if there is none.
    pub(crate) fn find(&mut self, key: &[u8]) -> Result<bool> {
        self.cursor.seek(self.version.set(key, self.at))?;
        Ok(self.read() && self.key == key && self.is_shown())
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        if self.cursor.is_valid() {
            self.leave()?;
        }
        self.forward()
    }

    pub(crate) fn prev(&mut self) -> Result<()> {
        if self.cursor.is_valid() {
            self.cursor.seek_back(self.version.set_start(&self.key), false)?;
        }
        self.backward()
    }

    /// Reads which version is under the cursor.
    fn read(&mut self) -> bool {
        if !self.cursor.is_valid() {
            return false;
        }
        // What is under a checksum was written by this program: it splits.
        self.seq = split(self.cursor.key(), &mut self.key).unwrap_or(u64::MAX);
        true
    }

    fn is_shown(&self) -> bool {
        self.seq <= self.at && self.at < self.cursor.seq()
    }

    /// To the first version of another key.
    fn leave(&mut self) -> Result<()> {
        for _ in 0..STEPS_MAX {
            self.cursor.next()?;
            if !self.cursor.is_valid() || !self.cursor.key().starts_with(self.version.set_start(&self.key)) {
                return Ok(());
            }
        }
        self.cursor.seek(self.version.set_end(&self.key))
    }

    fn forward(&mut self) -> Result<()> {
        while self.read() && !self.is_shown() {
            if self.seq > self.at {
                self.cursor.seek(self.version.set(&self.key, self.at))?;
            } else {
                self.leave()?;
            }
        }
        Ok(())
    }

    /// From some version of a key: to the right one of it, or of the nearest key below.
    fn backward(&mut self) -> Result<()> {
        while self.read() {
            let key = std::mem::take(&mut self.key);
            let is_found = self.find(&key)?;
            if !is_found {
                self.cursor.seek_back(self.version.set_start(&key), false)?;
            } else {
                return Ok(());
            }
        }
        Ok(())
    }
}
