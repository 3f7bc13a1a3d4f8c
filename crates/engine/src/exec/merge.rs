//! Merging scans that are each in sort order: `$in` on one field and a sort by the next, or a sorted disjunction.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use espalier_query::sort::Sort;
use espalier_value::{RawDoc, Result};

use super::records::IndexRecords;
use crate::catalog::Collection;
use crate::layout::RecordId;
use crate::plan::IndexScan;
use crate::view::View;

pub struct Merge {
    inputs: Vec<super::Records>,
    sort: Arc<Sort>,
    /// The next document of each input, by sort key.
    heads: BTreeMap<(Vec<u8>, usize), ()>,
    current: Option<usize>,
    seen: HashSet<RecordId>,
    opened: bool,
}

impl Merge {
    pub fn open(view: &View, collection: &Collection, scans: &[IndexScan], sort: Arc<Sort>) -> Result<Merge> {
        let inputs = scans
            .iter()
            .map(|scan| {
                let one = IndexRecords::open(view, collection, std::slice::from_ref(scan), false)?;
                Ok(super::Records::Index(Box::new(one)))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Merge { inputs, sort, heads: BTreeMap::new(), current: None, seen: HashSet::new(), opened: false })
    }

    pub fn next(&mut self) -> Result<bool> {
        if !self.opened {
            self.opened = true;
            for i in 0..self.inputs.len() {
                self.pull(i)?;
            }
        } else if let Some(i) = self.current.take() {
            self.pull(i)?;
        }
        loop {
            let Some(((_, i), ())) = self.heads.pop_first() else { return Ok(false) };
            if self.seen.insert(self.inputs[i].record()) {
                self.current = Some(i);
                return Ok(true);
            }
            self.pull(i)?;
        }
    }

    fn pull(&mut self, i: usize) -> Result<()> {
        if self.inputs[i].next()? {
            let mut key = Vec::with_capacity(24);
            self.sort.key(self.inputs[i].doc(), &mut key)?;
            self.heads.insert((key, i), ());
        }
        Ok(())
    }

    pub fn doc(&self) -> RawDoc<'_> {
        self.current.map_or(RawDoc::EMPTY, |i| self.inputs[i].doc())
    }

    pub fn record(&self) -> RecordId {
        self.current.map_or(0, |i| self.inputs[i].record())
    }

    pub fn examined(&self) -> (u64, u64) {
        self.inputs.iter().map(super::Records::examined).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }
}
