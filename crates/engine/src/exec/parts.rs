//! A scan of a collection in parts, each a range of record ids, for readers on several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use espalier_query::stream::Parts;
use espalier_query::{Context, Filter, Stream};
use espalier_value::{RawDoc, Result};

use crate::catalog::Collection;
use crate::layout::{RecordId, record_at_end, record_key, tree_range};
use crate::stats;
use crate::view::{View, ViewScan};

/// Smaller collections are read faster than a helper wakes up.
const DOCUMENTS_MIN: u64 = 16_384;
const BYTES_MIN: u64 = 4 << 20;
/// About as much as a part is to have: enough to be worth handing over, so little that nobody waits long for it.
const PART_BYTES: u64 = 256 << 10;
const PART_DOCUMENTS_MAX: u64 = 2_048;
/// Documents between two looks at the interrupt flag.
const CHECK_EVERY: u32 = 64;

/// Makes parts of a scan, if that is worth it. What their readers examine is added up here.
pub struct Divider {
    view: View,
    collection: Arc<Collection>,
    reverse: bool,
    examined: Arc<AtomicU64>,
}

impl Divider {
    pub fn new(view: &View, collection: Arc<Collection>, reverse: bool) -> Divider {
        Divider { view: view.clone(), collection, reverse, examined: Arc::default() }
    }

    /// What readers of parts have examined.
    pub fn examined(&self) -> u64 {
        self.examined.load(Ordering::Relaxed)
    }

    /// The parts of everything, or of what lies behind a record in the direction of the scan. `None` if there is too little
    /// to divide.
    pub fn parts(
        &self,
        after: Option<RecordId>,
        filter: Option<Arc<Filter>>,
        context: Arc<Context>,
    ) -> Result<Option<Ranges>> {
        let counts = stats::counts(&self.view, &self.collection)?;
        let (documents, bytes) = (counts.documents.max(1) as u64, counts.bytes.max(0) as u64);
        if documents < DOCUMENTS_MIN && bytes < BYTES_MIN {
            return Ok(None);
        }
        let (Some(mut first), Some(mut last)) = (self.edge(false)?, self.edge(true)?) else { return Ok(None) };
        let span = last.saturating_sub(first).saturating_add(1);
        match (after, self.reverse) {
            (None, _) => {}
            (Some(after), false) => first = after.saturating_add(1),
            (Some(after), true) => last = after.saturating_sub(1),
        }
        let document_bytes = (bytes / documents).max(1);
        let part_documents = (PART_BYTES / document_bytes).clamp(16, PART_DOCUMENTS_MAX);
        Ok(Some(Ranges {
            view: self.view.clone(),
            tree: self.collection.id,
            reverse: self.reverse,
            left: (first <= last).then_some((first, last)),
            // Ids have gaps where documents were deleted.
            width: part_documents.saturating_mul((span / documents).max(1)),
            filter,
            context,
            examined: Arc::clone(&self.examined),
        }))
    }

    /// The first or last record.
    fn edge(&self, last: bool) -> Result<Option<RecordId>> {
        let (low, high) = tree_range(self.collection.id);
        let mut scan = self.view.scan(&low, &high, last)?;
        Ok(if scan.next()? { Some(record_at_end(scan.key())) } else { None })
    }
}

pub struct Ranges {
    view: View,
    tree: u64,
    reverse: bool,
    /// First and last record id of what has not been given out.
    left: Option<(RecordId, RecordId)>,
    /// Record ids that a part covers.
    width: u64,
    filter: Option<Arc<Filter>>,
    context: Arc<Context>,
    examined: Arc<AtomicU64>,
}

impl Parts for Ranges {
    fn next(&mut self) -> Result<Option<Box<dyn Stream>>> {
        let Some((first, last)) = self.left else { return Ok(None) };
        let (from, to) = match self.reverse {
            false => (first, first.saturating_add(self.width - 1).min(last)),
            true => (last.saturating_sub(self.width - 1).max(first), last),
        };
        self.left = match self.reverse {
            false => to.checked_add(1).filter(|&next| next <= last).map(|next| (next, last)),
            true => from.checked_sub(1).filter(|&next| next >= first).map(|next| (first, next)),
        };
        let low = record_key(self.tree, from);
        let high = match to.checked_add(1) {
            Some(past) => record_key(self.tree, past),
            None => record_key(self.tree + 1, 0),
        };
        Ok(Some(Box::new(Part {
            scan: self.view.scan(&low, &high, self.reverse)?,
            filter: self.filter.clone(),
            context: Arc::clone(&self.context),
            examined: 0,
            total: Arc::clone(&self.examined),
            since_check: 0,
        })))
    }
}

/// The documents of a range that match.
struct Part {
    scan: ViewScan,
    filter: Option<Arc<Filter>>,
    context: Arc<Context>,
    examined: u64,
    total: Arc<AtomicU64>,
    since_check: u32,
}

impl Part {
    fn tell(&mut self) {
        self.total.fetch_add(std::mem::take(&mut self.examined), Ordering::Relaxed);
    }
}

impl Stream for Part {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        loop {
            self.since_check += 1;
            if self.since_check >= CHECK_EVERY {
                self.since_check = 0;
                self.context.interrupt.check()?;
            }
            if !self.scan.next()? {
                self.tell();
                return Ok(false);
            }
            self.examined += 1;
            match &self.filter {
                Some(filter) if !filter.matches(self.doc(), &self.context)? => {}
                _ => return Ok(true),
            }
        }
    }

    #[inline]
    fn doc(&self) -> RawDoc<'_> {
        RawDoc::trusted(self.scan.value())
    }

    fn record(&self) -> u64 {
        record_at_end(self.scan.key())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.tell();
    }
}
