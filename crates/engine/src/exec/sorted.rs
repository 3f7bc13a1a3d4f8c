//! Sorting in memory: the best `limit` of all, or all of them up to a limit of bytes.

use std::collections::BinaryHeap;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

use crate::layout::RecordId;

/// A document waiting for its place. Ordered by sort key, then by order of arrival, so that sorting is stable.
struct Waiting {
    key: Vec<u8>,
    arrival: u64,
    record: RecordId,
    doc: DocBuf,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.key.cmp(&other.key).then(self.arrival.cmp(&other.arrival))
    }
}

/// Collects documents and gives them back in order.
pub struct Sorter {
    /// With a limit: the greatest of the best on top, so that it can be thrown out.
    best: BinaryHeap<Waiting>,
    limit: Option<usize>,
    all: Vec<Waiting>,
    bytes: usize,
    bytes_max: usize,
    arrivals: u64,
}

impl Sorter {
    pub fn new(limit: Option<u64>, bytes_max: usize) -> Sorter {
        let limit = limit.and_then(|n| usize::try_from(n).ok());
        Sorter { best: BinaryHeap::new(), limit, all: Vec::new(), bytes: 0, bytes_max, arrivals: 0 }
    }

    pub fn push(&mut self, key: &[u8], record: RecordId, doc: RawDoc<'_>) -> Result<()> {
        self.arrivals += 1;
        match self.limit {
            Some(limit) => {
                if self.best.len() >= limit {
                    match self.best.peek() {
                        // No better than the worst that is kept, and later.
                        Some(worst) if key >= worst.key.as_slice() => return Ok(()),
                        None => return Ok(()),
                        Some(_) => self.bytes -= self.best.pop().map_or(0, |w| w.key.len() + w.doc.len_bytes()),
                    }
                }
                let waiting = self.waiting(key, record, doc)?;
                self.best.push(waiting);
            }
            None => {
                let waiting = self.waiting(key, record, doc)?;
                self.all.push(waiting);
            }
        }
        Ok(())
    }

    fn waiting(&mut self, key: &[u8], record: RecordId, doc: RawDoc<'_>) -> Result<Waiting> {
        self.bytes += key.len() + doc.as_bytes().len();
        if self.bytes > self.bytes_max {
            return Err(Error::new(
                Code::QueryExceededMemoryLimitNoDiskUseAllowed,
                format!(
                    "Sort exceeded memory limit of {} bytes; add an index that gives this order, or a limit",
                    self.bytes_max
                ),
            ));
        }
        Ok(Waiting { key: key.to_vec(), arrival: self.arrivals, record, doc: DocBuf::from_raw(doc) })
    }

    pub fn finish(mut self) -> std::vec::IntoIter<(RecordId, DocBuf)> {
        let waiting = if self.limit.is_some() {
            self.best.into_sorted_vec()
        } else {
            self.all.sort_unstable();
            self.all
        };
        waiting.into_iter().map(|w| (w.record, w.doc)).collect::<Vec<_>>().into_iter()
    }
}
