//! Walking the entries of an index that lie inside a scan's bounds.
//!
//! Bounds that are one run of entries need no check. Otherwise each entry's fields are compared with their
//! intervals, and the cursor jumps over what cannot match: a range on the first field with a point on the second
//! reads about one entry too many for each value of the first, not all of them.

use espalier_value::{Result, Value, key};

use crate::index::entry::split;
use crate::layout::{RecordId, TREE_BYTES, tree_range};
use crate::plan::scan::{AFTER, Skip};
use crate::plan::{ByteInterval, IndexScan};
use crate::view::{Lent, View, ViewScan};

pub struct Entries {
    source: Source,
    /// Present if entries have to be checked.
    bounds: Option<IndexScan>,
    /// Where to begin, if not at the beginning.
    jump: Option<Vec<u8>>,
    unique: bool,
    skipping: Option<Skipping>,
    examined: u64,
    done: bool,
}

/// Reading one entry of each value.
struct Skipping {
    skip: Skip,
    /// Which of the parts are descending.
    descending: Vec<bool>,
    /// The parts of the last entry that was given, tree included; empty before the first.
    given: Vec<u8>,
    reverse: bool,
}

enum Source {
    Nothing,
    /// The one entry of a unique index with this key: looked up, which is cheaper than a scan.
    Point {
        key: Vec<u8>,
        value: Lent,
    },
    Scan(Box<ViewScan>),
}

/// What the check of an entry says.
enum Verdict {
    Inside,
    /// Outside; the next that could be inside is at or past this key (before it, in a reverse scan).
    Jump(Vec<u8>),
    Past,
}

impl Entries {
    pub fn open(view: &View, scan: &IndexScan) -> Result<Entries> {
        let unique = scan.index.spec.unique;
        let (mut bounds, mut jump) = (None, None);
        let skipping = scan.distinct.map(|skip| Skipping {
            skip,
            descending: scan.parts.iter().take(skip.parts).map(|part| part.descending).collect(),
            given: Vec::new(),
            reverse: scan.reverse,
        });
        let source = if scan.is_empty() {
            Source::Nothing
        } else if let Some(key) = (unique && skipping.is_none()).then(|| scan.point()).flatten() {
            match view.get(&key)? {
                Some(value) => Source::Point { key, value },
                None => Source::Nothing,
            }
        } else if let Some((low, high)) = scan.contiguous() {
            Source::Scan(Box::new(view.scan(&low, &high, scan.reverse)?))
        } else {
            let (low, high) = tree_range(scan.index.id);
            (bounds, jump) = (Some(scan.clone()), Some(start(scan)));
            Source::Scan(Box::new(view.scan(&low, &high, scan.reverse)?))
        };
        Ok(Entries { source, bounds, jump, unique, skipping, examined: 0, done: false })
    }

    /// Moves to the next entry inside the bounds.
    pub fn next(&mut self) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        let scan = match &mut self.source {
            Source::Scan(scan) => scan,
            Source::Point { .. } if self.examined == 0 => {
                self.examined = 1;
                return Ok(true);
            }
            _ => {
                self.done = true;
                return Ok(false);
            }
        };
        let mut found = match self.jump.take() {
            Some(to) => scan.seek(&to)?,
            None => scan.next()?,
        };
        while found {
            if let Some(skipping) = &self.skipping
                && let Some(past) = skipping.past(scan.key())
            {
                found = scan.seek(&past)?;
                continue;
            }
            self.examined += 1;
            let verdict = self.bounds.as_ref().map_or(Verdict::Inside, |bounds| check(bounds, scan.key()));
            match verdict {
                Verdict::Inside => {
                    let skipping = self.skipping.as_mut();
                    if skipping.is_none_or(|skipping| skipping.give(self.unique, scan.key(), scan.value())) {
                        return Ok(true);
                    }
                    found = scan.next()?;
                }
                Verdict::Past => break,
                // Backwards, an excluded edge can be the very entry the cursor stands on.
                Verdict::Jump(to) if to == scan.key() => found = scan.next()?,
                Verdict::Jump(to) => found = scan.seek(&to)?,
            }
        }
        self.done = true;
        Ok(false)
    }

    /// Encoded fields, record id and type bytes of the entry under the cursor.
    fn parts(&self) -> (&[u8], RecordId, &[u8]) {
        match &self.source {
            Source::Nothing => (&[], 0, &[]),
            Source::Point { key, value } => split(self.unique, key, value),
            Source::Scan(scan) => split(self.unique, scan.key(), scan.value()),
        }
    }

    pub fn record(&self) -> RecordId {
        self.parts().1
    }

    /// Encoded fields and their type bytes.
    pub fn fields(&self) -> (&[u8], &[u8]) {
        let (fields, _, types) = self.parts();
        (fields, types)
    }

    pub fn examined(&self) -> u64 {
        self.examined
    }
}

impl Skipping {
    /// Where to go on if the entry has the values of the last one. Most often the next entry has others already, which
    /// is found out without a search.
    fn past(&self, key: &[u8]) -> Option<Vec<u8>> {
        if self.given.is_empty() || !key.starts_with(&self.given) {
            return None;
        }
        let mut past = self.given.clone();
        if !self.reverse {
            past.extend_from_slice(&AFTER);
        }
        Some(past)
    }

    /// Takes an entry as the one of its values; false if it does not count.
    fn give(&mut self, unique: bool, key: &[u8], value: &[u8]) -> bool {
        let (fields, _, types) = split(unique, key, value);
        if !self.skip.missing {
            let mut decoder = key::Decoder::new(fields, types);
            let last = self.descending.iter().map(|descending| decoder.next(*descending)).last();
            if matches!(last, Some(Some(Value::Missing))) {
                return false;
            }
        }
        let mut len = 0;
        for descending in &self.descending {
            let Some(part) = fields.get(len..).and_then(|rest| key::encoded_len(rest, *descending)) else { break };
            len += part;
        }
        self.given.clear();
        self.given.extend_from_slice(key.get(..TREE_BYTES + len).unwrap_or_default());
        true
    }
}

/// Where a checked scan begins.
fn start(scan: &IndexScan) -> Vec<u8> {
    let mut at = scan.index.id.to_be_bytes().to_vec();
    for part in &scan.parts {
        let edge = if scan.reverse { part.intervals.last() } else { part.intervals.first() };
        let Some(edge) = edge else { break };
        if !push_edge(&mut at, edge, scan.reverse) {
            return at;
        }
    }
    if scan.reverse {
        at.extend_from_slice(&AFTER);
    }
    at
}

/// Appends the edge an interval is entered by. False if nothing more precise can follow.
fn push_edge(at: &mut Vec<u8>, interval: &ByteInterval, reverse: bool) -> bool {
    let (edge, inclusive) = match reverse {
        false => (&interval.low, interval.low_inclusive),
        true => (&interval.high, interval.high_inclusive),
    };
    at.extend_from_slice(edge);
    if !inclusive && !reverse {
        at.extend_from_slice(&AFTER);
    }
    inclusive
}

fn check(scan: &IndexScan, entry: &[u8]) -> Verdict {
    let mut at = TREE_BYTES;
    for (i, part) in scan.parts.iter().enumerate() {
        let Some(len) = entry.get(at..).and_then(|rest| key::encoded_len(rest, part.descending)) else {
            return Verdict::Past;
        };
        let field = &entry[at..at + len];
        match place(&part.intervals, field, scan.reverse) {
            Place::Inside => at += len,
            Place::Before(interval) => {
                let mut to = entry[..at].to_vec();
                if push_edge(&mut to, interval, scan.reverse) {
                    for later in &scan.parts[i + 1..] {
                        let edge = if scan.reverse { later.intervals.last() } else { later.intervals.first() };
                        if !edge.is_some_and(|edge| push_edge(&mut to, edge, scan.reverse)) {
                            return Verdict::Jump(to);
                        }
                    }
                    if scan.reverse {
                        to.extend_from_slice(&AFTER);
                    }
                }
                return Verdict::Jump(to);
            }
            Place::Past if i == 0 => return Verdict::Past,
            Place::Past => {
                // Nothing more under this prefix: on to the next one.
                let mut to = entry[..at].to_vec();
                if !scan.reverse {
                    to.extend_from_slice(&AFTER);
                }
                return Verdict::Jump(to);
            }
        }
    }
    Verdict::Inside
}

enum Place<'i> {
    Inside,
    /// Before this interval, in the direction of the scan.
    Before(&'i ByteInterval),
    Past,
}

fn place<'i>(intervals: &'i [ByteInterval], field: &[u8], reverse: bool) -> Place<'i> {
    // Ascending and disjoint: the first interval that does not end before the field.
    let at = intervals.partition_point(|i| i.is_before(field));
    if let Some(interval) = intervals.get(at)
        && !interval.is_after(field)
    {
        return Place::Inside;
    }
    let next = if reverse { at.checked_sub(1).and_then(|i| intervals.get(i)) } else { intervals.get(at) };
    next.map_or(Place::Past, Place::Before)
}

/// Deleted entries that an estimate passes at most, and how many of them it takes for one that is there: they are in the way
/// until they are merged away, and passed without being looked at.
const DELETED_MAX: u64 = 2_000;
const DELETED_PER_ENTRY: u64 = 10;

/// Entries inside the bounds, counted up to `max`; those that have been deleted count for little, and are not passed for long.
pub fn estimate(view: &View, scan: &IndexScan, max: u64) -> Result<u64> {
    let mut entries = Entries::open(view, scan)?;
    if let Source::Scan(scan) = &mut entries.source {
        scan.pass_at_most(DELETED_MAX);
    }
    let mut count = 0;
    while count < max && entries.next()? {
        count += 1;
    }
    let deleted = match &entries.source {
        Source::Scan(scan) => scan.deleted() / DELETED_PER_ENTRY,
        _ => 0,
    };
    Ok((count.max(entries.examined()) + deleted).min(max))
}
