//! A position in a sequence of runs that do not overlap: one run, or a whole level.

use std::ops::Range;
use std::sync::Arc;

use super::{Block, Found, Level};
use crate::Result;
use crate::cache::Use;

/// Walks entries in either direction, tombstones included. The key is put together in a buffer
/// that is used again; values are lent from the block.
pub(crate) struct RunCursor {
    runs: Arc<Level>,
    range: Range<usize>,
    usage: Use,
    run: usize,
    number: usize,
    /// `None` when the cursor is nowhere.
    block: Option<Arc<Block>>,
    at: usize,
    key: Vec<u8>,
    seq: u64,
    value: Option<(usize, usize)>,
}

impl RunCursor {
    /// Walks `range` of `runs`, which are sorted and do not overlap.
    pub(crate) fn new(runs: Arc<Level>, range: Range<usize>, usage: Use) -> RunCursor {
        RunCursor { runs, range, usage, run: 0, number: 0, block: None, at: 0, key: Vec::new(), seq: 0, value: None }
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.block.is_some()
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    #[inline]
    pub(crate) fn is_tombstone(&self) -> bool {
        self.value.is_none()
    }

    #[inline]
    pub(crate) fn value(&self) -> Option<&[u8]> {
        Some(self.block.as_ref()?.slice(self.value?))
    }

    pub(crate) fn value_owned(&self) -> Option<(Arc<Block>, (usize, usize))> {
        Some((self.block.as_ref()?.clone(), self.value?))
    }

    /// The entry under the cursor, to be kept.
    pub(crate) fn found(&self) -> Option<Found> {
        Some(Found { block: self.block.as_ref()?.clone(), seq: self.seq, value: self.value })
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        self.enter_first(self.range.start)
    }

    pub(crate) fn last(&mut self) -> Result<()> {
        self.enter_last(self.range.end)
    }

    /// To the first key at or above `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        let run = self.runs.find(key).max(self.range.start);
        if run >= self.range.end {
            self.block = None;
            return Ok(());
        }
        let number = self.runs[run].find_block(key);
        if number == self.runs[run].blocks() {
            return self.enter_first(run + 1);
        }
        self.load(run, number, self.seek_usage())?;
        let Some(block) = &self.block else {
            return Ok(());
        };
        let (at, _) = block.search(key);
        if at == block.count() {
            return self.next_block();
        }
        self.show(at);
        Ok(())
    }

    /// To the last key below `key`, or at it if `inclusive`.
    pub(crate) fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        let past = self.runs.past(key, inclusive).min(self.range.end);
        if past <= self.range.start {
            self.block = None;
            return Ok(());
        }
        let run = past - 1;
        let number = self.runs[run].find_block(key);
        if number == self.runs[run].blocks() {
            return self.enter_last(past);
        }
        self.load(run, number, self.seek_usage())?;
        let Some(block) = &self.block else {
            return Ok(());
        };
        let (at, is_exact) = block.search(key);
        if is_exact && inclusive {
            self.show(at);
        } else if at == 0 {
            return self.prev_block();
        } else {
            self.show(at - 1);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        let Some(block) = &self.block else {
            return Ok(());
        };
        if self.at + 1 < block.count() {
            self.show(self.at + 1);
            return Ok(());
        }
        self.next_block()
    }

    #[inline]
    pub(crate) fn prev(&mut self) -> Result<()> {
        if self.block.is_none() {
            return Ok(());
        }
        if self.at > 0 {
            self.show(self.at - 1);
            return Ok(());
        }
        self.prev_block()
    }

    /// A block found by a seek is a point read; those walked through after it are a scan.
    fn seek_usage(&self) -> Use {
        match self.usage {
            Use::Once => Use::Once,
            Use::Get | Use::Scan => Use::Get,
        }
    }

    fn next_block(&mut self) -> Result<()> {
        if self.number + 1 < self.runs[self.run].blocks() {
            self.load(self.run, self.number + 1, self.usage)?;
            self.show(0);
            return Ok(());
        }
        self.enter_first(self.run + 1)
    }

    fn prev_block(&mut self) -> Result<()> {
        if self.number > 0 {
            self.load(self.run, self.number - 1, self.usage)?;
            self.show_last();
            return Ok(());
        }
        self.enter_last(self.run)
    }

    fn enter_first(&mut self, run: usize) -> Result<()> {
        if run >= self.range.end {
            self.block = None;
            return Ok(());
        }
        self.load(run, 0, self.usage)?;
        self.show(0);
        Ok(())
    }

    /// To the end of the run before `past`.
    fn enter_last(&mut self, past: usize) -> Result<()> {
        if past <= self.range.start {
            self.block = None;
            return Ok(());
        }
        let run = past - 1;
        self.load(run, self.runs[run].blocks() - 1, self.usage)?;
        self.show_last();
        Ok(())
    }

    fn load(&mut self, run: usize, number: usize, usage: Use) -> Result<()> {
        if self.block.is_some() && (self.run, self.number) == (run, number) {
            return Ok(());
        }
        // Nowhere until the read succeeds.
        self.block = None;
        let block = self.runs[run].block(number, usage)?;
        self.key.clear();
        self.key.extend_from_slice(block.prefix());
        self.block = Some(block);
        (self.run, self.number) = (run, number);
        Ok(())
    }

    #[inline]
    fn show(&mut self, at: usize) {
        let Some(block) = &self.block else { return };
        let entry = block.entry(at);
        self.key.truncate(block.prefix().len());
        self.key.extend_from_slice(entry.suffix);
        self.seq = entry.seq;
        self.value = entry.value;
        self.at = at;
    }

    fn show_last(&mut self) {
        if let Some(block) = &self.block {
            self.show(block.count() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::KvError;
    use crate::cache::Cache;
    use crate::disk::{Disk, MemDisk};
    use crate::hash::hash64;
    use crate::options::Options;
    use crate::run::{Graveyard, Run, RunContext, RunWriter, file_name};

    fn context() -> RunContext {
        RunContext { cache: Arc::new(Cache::new(1 << 20)), graveyard: Arc::new(Graveyard::default()) }
    }

    fn key(n: u32) -> Vec<u8> {
        format!("key{n:05}").into_bytes()
    }

    /// Runs with the even numbers of 0..count, cut into `files` runs.
    fn runs(disk: &MemDisk, count: u32, files: u32) -> Arc<Level> {
        let context = context();
        let runs = (0..files)
            .map(|file| {
                let mut writer = RunWriter::create(disk, u64::from(file), &Options::tiny()).unwrap();
                for n in (count * file / files..count * (file + 1) / files).filter(|n| n % 2 == 0) {
                    let value = vec![n as u8; n as usize % 50];
                    let value = (n % 10 != 0).then_some(&value[..]);
                    writer.add(&key(n), u64::from(n), value).unwrap();
                }
                let meta = writer.finish().unwrap();
                Arc::new(Run::open(disk, &meta, &context).unwrap())
            })
            .collect();
        Level::new(runs)
    }

    #[test]
    fn walks_and_seeks_over_several_runs() {
        let disk = MemDisk::new();
        let runs = runs(&disk, 600, 3);
        let mut cursor = RunCursor::new(runs.clone(), 0..3, Use::Scan);
        cursor.first().unwrap();
        for n in (0..600).step_by(2) {
            assert!(cursor.is_valid());
            assert_eq!((cursor.key(), cursor.seq()), (&key(n)[..], u64::from(n)));
            assert_eq!(cursor.is_tombstone(), n % 10 == 0);
            cursor.next().unwrap();
        }
        assert!(!cursor.is_valid());
        cursor.last().unwrap();
        for n in (0..600).step_by(2).rev() {
            assert_eq!(cursor.key(), key(n));
            cursor.prev().unwrap();
        }
        assert!(!cursor.is_valid());
        for n in 0..602 {
            cursor.seek(&key(n)).unwrap();
            let above = n.next_multiple_of(2);
            assert_eq!(cursor.is_valid(), above < 600, "{n}");
            if cursor.is_valid() {
                assert_eq!(cursor.key(), key(above), "{n}");
            }
            for inclusive in [true, false] {
                cursor.seek_back(&key(n), inclusive).unwrap();
                let below = match (n % 2, inclusive) {
                    (0, true) => Some(n),
                    (0, false) => n.checked_sub(2),
                    _ => Some(n - 1),
                }
                .map(|n| n.min(598));
                assert_eq!(cursor.is_valid(), below.is_some());
                if let Some(below) = below {
                    assert_eq!(cursor.key(), key(below), "{n} {inclusive}");
                }
            }
        }
    }

    #[test]
    fn get_finds_what_is_there_and_nothing_else() {
        let disk = MemDisk::new();
        let runs = runs(&disk, 400, 1);
        for n in 0..400 {
            let found = runs[0].get(&key(n), hash64(&key(n))).unwrap();
            assert_eq!(found.is_some(), n % 2 == 0);
            if let Some(found) = found {
                assert_eq!(found.value.is_none(), n % 10 == 0);
            }
        }
    }

    #[test]
    fn every_flipped_byte_is_an_error_or_changes_nothing() {
        let disk = MemDisk::new();
        let meta = runs(&disk, 60, 1)[0].meta.clone();
        for offset in 0..meta.bytes {
            disk.damage(&file_name(0), offset, 0x40);
            // Every byte is under a checksum: opening or walking must notice.
            let result = Run::open(&disk, &meta, &context()).and_then(|run| {
                let mut cursor = RunCursor::new(Level::new(vec![Arc::new(run)]), 0..1, Use::Once);
                cursor.first()?;
                while cursor.is_valid() {
                    cursor.next()?;
                }
                Ok(())
            });
            assert!(matches!(result, Err(KvError::Corrupt { .. })), "byte {offset}: {result:?}");
            disk.damage(&file_name(0), offset, 0x40);
        }
    }

    #[test]
    fn an_obsolete_run_goes_with_its_last_reference() {
        let disk = MemDisk::new();
        let runs = runs(&disk, 60, 1);
        let context = runs[0].context.clone();
        runs[0].block(0, Use::Get).unwrap();
        assert!(context.cache.bytes() > 0);
        let kept = runs.clone();
        runs[0].set_obsolete();
        drop(runs);
        assert!(context.graveyard.is_empty());
        drop(kept);
        assert!(!context.graveyard.is_empty());
        context.graveyard.bury(&disk, &context.cache).unwrap();
        assert!(disk.list().unwrap().is_empty());
        assert_eq!(context.cache.bytes(), 0);
    }
}
