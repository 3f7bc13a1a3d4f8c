//! Documents that wait for their values, first in, first out. What does not fit into memory goes to files.

use std::collections::VecDeque;
use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, document_len};

use crate::stage::spilled::{Writer, Written};
use crate::stage::{Run, Spill};

pub(super) struct DocQueue {
    /// The oldest documents, one after the other; those before `at` are gone.
    front: Vec<u8>,
    at: usize,
    /// Younger ones, oldest file first.
    files: VecDeque<Written>,
    /// The youngest. Unused while everything fits into `front`.
    back: Vec<u8>,
    count: u64,
    memory_bytes_max: usize,
    spill: Option<Arc<dyn Spill>>,
}

impl DocQueue {
    pub fn new(run: &Run) -> DocQueue {
        DocQueue {
            front: Vec::new(),
            at: 0,
            files: VecDeque::new(),
            back: Vec::new(),
            count: 0,
            memory_bytes_max: run.limits.stage_memory_bytes_max,
            spill: run.spill.clone(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes held in memory.
    pub fn memory(&self) -> usize {
        self.front.len() - self.at + self.back.len()
    }

    /// `other_bytes` is what else counts towards the limit.
    pub fn push(&mut self, doc: RawDoc<'_>, other_bytes: usize) -> Result<()> {
        let bytes = doc.as_bytes();
        self.count += 1;
        if self.files.is_empty() && self.back.is_empty() {
            if self.at > 0 && (self.at == self.front.len() || self.at > self.front.len() / 2 + 4096) {
                self.front.drain(..self.at);
                self.at = 0;
            }
            if self.memory() + other_bytes + bytes.len() <= self.memory_bytes_max {
                self.front.extend_from_slice(bytes);
                return Ok(());
            }
        }
        // A share of the limit for each file, so that few are made and little is held.
        if !self.back.is_empty() && self.back.len() + bytes.len() > self.memory_bytes_max / 4 {
            self.write_back()?;
        }
        if self.spill.is_none() {
            let limit = self.memory_bytes_max;
            let message = format!(
                "Exceeded memory limit of {limit} bytes for $setWindowFields, but didn't allow external spilling. \
                 Pass allowDiskUse:true to opt in."
            );
            return Err(Error::new(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message));
        }
        self.back.extend_from_slice(bytes);
        Ok(())
    }

    #[cold]
    fn write_back(&mut self) -> Result<()> {
        let Some(spill) = &self.spill else { return Ok(()) };
        let mut writer = Writer::new(&**spill)?;
        let mut at = 0;
        while at < self.back.len() {
            let end = at + document_len(&self.back[at..])?;
            writer.append(&[], RawDoc::trusted(&self.back[at..end]))?;
            at = end;
        }
        self.files.push_back(writer.finish()?);
        self.back.clear();
        Ok(())
    }

    /// Takes the oldest document out; false if there is none.
    pub fn pop(&mut self, out: &mut DocBuf) -> Result<bool> {
        out.clear();
        if self.at == self.front.len() {
            self.front.clear();
            self.at = 0;
            while let Some(file) = self.files.front_mut() {
                if file.advance()? {
                    self.count -= 1;
                    out.append_with(|bytes| bytes.extend_from_slice(file.doc().iter().rest()));
                    return Ok(true);
                }
                self.files.pop_front();
            }
            std::mem::swap(&mut self.front, &mut self.back);
        }
        if self.at == self.front.len() {
            return Ok(false);
        }
        let end = self.at + document_len(&self.front[self.at..])?;
        let doc = RawDoc::trusted(&self.front[self.at..end]);
        out.append_with(|bytes| bytes.extend_from_slice(doc.iter().rest()));
        self.at = end;
        self.count -= 1;
        Ok(true)
    }
}
