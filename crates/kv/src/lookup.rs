//! Looking up many keys of one range, one after the other, at one snapshot.

use crate::Result;
use crate::bytes::Bytes;
use crate::memtable::NearTable;
use crate::run::NearRuns;
use crate::snapshot::Snapshot;

/// Finds what [`Snapshot::get`] finds, and is faster where keys lie near the one before, above all in ascending order. It
/// keeps what it needs alive and lends what it finds.
pub struct Lookup {
    /// Newest first.
    tables: Vec<NearTable>,
    runs: Vec<NearRuns>,
    /// At a time that has been, each key is looked up by itself: nothing near it is of use.
    past: Option<(Snapshot, Option<Bytes>)>,
    found: Found,
}

/// Where the last key was found.
#[derive(Clone, Copy)]
enum Found {
    Nowhere,
    Table(usize),
    Runs(usize),
    Past,
}

impl Lookup {
    pub(crate) fn new(snapshot: &Snapshot, lower: &[u8], upper: &[u8]) -> Lookup {
        let (mut tables, mut runs) = (Vec::new(), Vec::new());
        let past = snapshot.is_past.then(|| (snapshot.clone(), None));
        if past.is_none() && !snapshot.is_dropped(lower) {
            let state = &snapshot.state;
            tables.extend(state.tables().filter_map(|table| NearTable::new(table, snapshot.seq, lower, upper)));
            let levels = state.version.singles().iter().chain(&state.version.levels()[1..]);
            let bounds = (std::ops::Bound::Included(lower), std::ops::Bound::Excluded(upper));
            let within = levels.filter(|level| !level.within(bounds.0, bounds.1).is_empty());
            runs.extend(within.map(|level| NearRuns::new(level.clone())));
        }
        Lookup { tables, runs, past, found: Found::Nowhere }
    }

    /// The value of `key`, lent until the next call. The key must lie within the bounds that this was made for.
    #[inline]
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.found = Found::Nowhere;
        if let Some((snapshot, value)) = &mut self.past {
            *value = snapshot.get(key)?;
            self.found = Found::Past;
            return Ok(self.value());
        }
        let mut hash = None;
        for (at, table) in self.tables.iter_mut().enumerate() {
            if table.find(key, &mut hash) {
                self.found = Found::Table(at);
                return Ok(self.value());
            }
        }
        for (at, runs) in self.runs.iter_mut().enumerate() {
            if runs.find(key, &mut hash)? {
                self.found = Found::Runs(at);
                break;
            }
        }
        Ok(self.value())
    }

    /// What the last [`Lookup::get`] found.
    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        match self.found {
            Found::Nowhere => None,
            Found::Table(at) => self.tables[at].value(),
            Found::Runs(at) => self.runs[at].value(),
            Found::Past => self.past.as_ref().and_then(|(_, value)| value.as_deref()),
        }
    }
}
