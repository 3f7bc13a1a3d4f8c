//! The records a plan leads to, one after the other, each once.

use std::collections::HashSet;

use espalier_value::{RawDoc, Result};

use super::entries::Entries;
use crate::catalog::Collection;
use crate::layout::{RecordId, record_at_end, record_key, tree_range};
use crate::plan::{Access, IndexScan};
use crate::view::{Lent, View, ViewLookup, ViewScan};

/// A source of records with their documents.
pub enum Records {
    Collection { scan: Box<ViewScan>, examined: u64 },
    Index(Box<IndexRecords>),
}

/// Records by way of one or more index scans.
pub struct IndexRecords {
    view: View,
    tree: u64,
    current: Option<Entries>,
    later: std::vec::IntoIter<IndexScan>,
    /// Records already given; kept where one could come twice.
    seen: Option<HashSet<RecordId>>,
    record: RecordId,
    doc: Fetched,
    keys_examined: u64,
    docs_examined: u64,
    /// Documents are not wanted, only keys.
    keys_only: bool,
    index: Option<std::sync::Arc<crate::catalog::Index>>,
}

/// The document under the cursor, and how the next one is fetched: the first by itself, since often there is no other.
enum Fetched {
    Nothing,
    One(Lent),
    Many(Box<ViewLookup>),
}

impl Fetched {
    #[inline]
    fn fetch(&mut self, view: &View, tree: u64, record: RecordId) -> Result<bool> {
        let key = record_key(tree, record);
        match self {
            Fetched::Many(lookup) => lookup.find(&key),
            Fetched::Nothing => {
                let Some(doc) = view.get(&key)? else { return Ok(false) };
                *self = Fetched::One(doc);
                Ok(true)
            }
            Fetched::One(_) => {
                let (low, high) = tree_range(tree);
                let mut lookup = Box::new(view.lookup(&low, &high));
                let found = lookup.find(&key)?;
                *self = Fetched::Many(lookup);
                Ok(found)
            }
        }
    }

    #[inline]
    fn doc(&self) -> RawDoc<'_> {
        match self {
            Fetched::Nothing => RawDoc::EMPTY,
            Fetched::One(doc) => RawDoc::trusted(doc),
            Fetched::Many(lookup) => lookup.value().map_or(RawDoc::EMPTY, RawDoc::trusted),
        }
    }
}

impl Records {
    pub fn open(view: &View, collection: &Collection, access: &Access, keys_only: bool) -> Result<Records> {
        match access {
            Access::Collection { reverse } => {
                let (low, high) = tree_range(collection.id);
                Ok(Records::Collection { scan: Box::new(view.scan(&low, &high, *reverse)?), examined: 0 })
            }
            access => Ok(Records::Index(Box::new(IndexRecords::open(view, collection, access.scans(), keys_only)?))),
        }
    }

    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        match self {
            Records::Collection { scan, examined } => {
                let found = scan.next()?;
                *examined += u64::from(found);
                Ok(found)
            }
            Records::Index(records) => records.next(),
        }
    }

    #[inline]
    pub fn doc(&self) -> RawDoc<'_> {
        match self {
            Records::Collection { scan, .. } => RawDoc::trusted(scan.value()),
            Records::Index(records) => records.doc.doc(),
        }
    }

    pub fn record(&self) -> RecordId {
        match self {
            Records::Collection { scan, .. } => record_at_end(scan.key()),
            Records::Index(records) => records.record,
        }
    }

    /// The index entry under the cursor: encoded fields and type bytes.
    pub fn fields(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Records::Collection { .. } => None,
            Records::Index(records) => records.current.as_ref().map(Entries::fields),
        }
    }

    /// Reads the document of an entry where only keys are wanted.
    pub fn fetch(&mut self) -> Result<()> {
        match self {
            Records::Collection { .. } => Ok(()),
            Records::Index(records) => records.fetch(),
        }
    }

    pub fn examined(&self) -> (u64, u64) {
        match self {
            Records::Collection { examined, .. } => (0, *examined),
            Records::Index(r) => (r.keys_examined + r.current.as_ref().map_or(0, Entries::examined), r.docs_examined),
        }
    }
}

impl IndexRecords {
    pub fn open(view: &View, collection: &Collection, scans: &[IndexScan], keys_only: bool) -> Result<IndexRecords> {
        // An array that is read one entry a value may come with each of its elements.
        let may_repeat = |s: &IndexScan| {
            let several = s.index.multikey() != 0 || s.index.spec.is_wildcard();
            several && s.distinct.is_none() && !is_single_key(s)
        };
        let repeats = scans.len() > 1 || scans.iter().any(may_repeat);
        for scan in scans {
            scan.index.accesses.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        let mut later = Vec::from(scans).into_iter();
        let current = later.next().map(|scan| Entries::open(view, &scan)).transpose()?;
        Ok(IndexRecords {
            view: view.clone(),
            tree: collection.id,
            current,
            later,
            seen: repeats.then(HashSet::new),
            record: 0,
            doc: Fetched::Nothing,
            keys_examined: 0,
            docs_examined: 0,
            keys_only,
            index: scans.first().map(|s| s.index.clone()),
        })
    }

    /// The index of a single scan.
    pub fn index(&self) -> Option<std::sync::Arc<crate::catalog::Index>> {
        self.index.clone()
    }

    /// Reads the document of the entry under the cursor where only keys are wanted.
    pub fn fetch(&mut self) -> Result<()> {
        self.docs_examined += 1;
        if !self.doc.fetch(&self.view, self.tree, self.record)? {
            self.doc = Fetched::Nothing;
        }
        Ok(())
    }

    pub fn next(&mut self) -> Result<bool> {
        loop {
            let Some(entries) = &mut self.current else { return Ok(false) };
            if !entries.next()? {
                self.keys_examined += entries.examined();
                self.current = self.later.next().map(|scan| Entries::open(&self.view, &scan)).transpose()?;
                continue;
            }
            self.record = entries.record();
            if let Some(seen) = &mut self.seen
                && !seen.insert(self.record)
            {
                continue;
            }
            if self.keys_only {
                return Ok(true);
            }
            self.docs_examined += 1;
            // One snapshot for both, so an entry without its document would be damage; skipping it is what a
            // reader can do, and `validate` reports it.
            if self.doc.fetch(&self.view, self.tree, self.record)? {
                return Ok(true);
            }
        }
    }
}

/// All parts are points: a record has at most one such entry.
fn is_single_key(scan: &IndexScan) -> bool {
    scan.parts.iter().all(|p| p.is_point())
}
