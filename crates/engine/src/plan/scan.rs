//! An index scan: bounds for each part of the key, as encoded bytes in the order the index stores them.

use std::sync::Arc;

use espalier_query::filter::{Bounds, Interval};
use espalier_store::IndexKind;
use espalier_value::{Type, Value, ValueRef, key};

use crate::catalog::Index;
use crate::layout::{TREE_BYTES, tree_range};

#[derive(Clone, Debug)]
pub struct IndexScan {
    pub index: Arc<Index>,
    pub parts: Vec<PartBounds>,
    pub reverse: bool,
    /// Every entry inside the bounds is a match.
    pub exact: bool,
    /// `min` and `max`: encoded keys, inclusive below and exclusive above, instead of bounds by part.
    pub run: Option<Run>,
    /// Only the first entry of each value is read.
    pub distinct: Option<Skip>,
}

/// What makes entries the same for a scan that reads one of each.
#[derive(Clone, Copy, Debug)]
pub struct Skip {
    /// The parts of the key that are compared, from the first one on.
    pub parts: usize,
    /// Whether entries count that stand for a document without the last of them.
    pub missing: bool,
}

pub type Run = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The intervals of one part of the key.
#[derive(Clone, Debug)]
pub struct PartBounds {
    /// As values, in value order: for `explain`.
    pub source: Vec<Interval>,
    /// As stored, ascending by bytes.
    pub intervals: Vec<ByteInterval>,
    pub descending: bool,
}

#[derive(Clone, Debug)]
pub struct ByteInterval {
    pub low: Vec<u8>,
    pub low_inclusive: bool,
    pub high: Vec<u8>,
    pub high_inclusive: bool,
}

/// Sorts after every continuation of a key: a rank byte is at most 127, an inverted one at most 254.
pub const AFTER: [u8; 9] = [0xFF; 9];

impl PartBounds {
    pub fn new(bounds: &Bounds, kind: IndexKind) -> PartBounds {
        let descending = kind == IndexKind::Descending;
        let mut intervals: Vec<ByteInterval> =
            bounds.intervals.iter().map(|i| ByteInterval::new(i, descending)).collect();
        if descending {
            intervals.reverse();
        }
        PartBounds { source: bounds.intervals.clone(), intervals, descending }
    }

    pub fn everything(kind: IndexKind) -> PartBounds {
        PartBounds::new(&Bounds::exact(vec![Interval::everything()]), kind)
    }

    pub fn is_everything(&self) -> bool {
        matches!(self.source.as_slice(), [i] if i.low_inclusive && i.high_inclusive
            && matches!(i.low.as_ref(), Some(ValueRef::MinKey)) && matches!(i.high.as_ref(), Some(ValueRef::MaxKey)))
    }

    /// Whether a string, or something that may hold one, can lie inside: what a collation orders.
    pub fn may_hold_strings(&self) -> bool {
        let (first, last) = (Type::String.rank(), Type::Array.rank());
        let rank = |value: &Value<'_>| value.or_null().ty().rank();
        self.source.iter().any(|i| rank(&i.low) <= last && rank(&i.high) >= first)
    }

    /// The one value this part must have.
    pub fn is_point(&self) -> bool {
        matches!(self.intervals.as_slice(), [one] if one.is_point())
    }

    pub fn all_points(&self) -> bool {
        self.intervals.iter().all(ByteInterval::is_point)
    }
}

impl ByteInterval {
    fn new(interval: &Interval, descending: bool) -> ByteInterval {
        let encode = |value: ValueRef<'_>| {
            let mut out = Vec::new();
            key::encode_directed(&mut out, value, descending);
            out
        };
        let (low, high) = (encode(interval.low.or_null()), encode(interval.high.or_null()));
        let (low_inclusive, high_inclusive) = (interval.low_inclusive, interval.high_inclusive);
        if descending {
            return ByteInterval { low: high, low_inclusive: high_inclusive, high: low, high_inclusive: low_inclusive };
        }
        ByteInterval { low, low_inclusive, high, high_inclusive }
    }

    pub fn is_point(&self) -> bool {
        self.low_inclusive && self.high_inclusive && self.low == self.high
    }

    /// `field` lies before the interval.
    pub fn is_after(&self, field: &[u8]) -> bool {
        if self.low_inclusive { field < self.low.as_slice() } else { field <= self.low.as_slice() }
    }

    /// `field` lies past the interval.
    pub fn is_before(&self, field: &[u8]) -> bool {
        if self.high_inclusive { field > self.high.as_slice() } else { field >= self.high.as_slice() }
    }
}

impl IndexScan {
    /// The one key, if every part is a point; tree included.
    pub fn point(&self) -> Option<Vec<u8>> {
        if self.run.is_some() || !self.parts.iter().all(PartBounds::is_point) {
            return None;
        }
        let mut key = self.index.id.to_be_bytes().to_vec();
        self.parts.iter().for_each(|p| key.extend_from_slice(&p.intervals[0].low));
        Some(key)
    }

    /// If the bounds are one run of entries: its first key and the first key past it, tree included.
    pub fn contiguous(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        if let Some((low, high)) = &self.run {
            let (first, past) = tree_range(self.index.id);
            let key = |bound: &Vec<u8>| [first.as_slice(), bound].concat();
            return Some((low.as_ref().map_or(first.to_vec(), key), high.as_ref().map_or(past.to_vec(), key)));
        }
        let points = self.parts.iter().take_while(|p| p.is_point()).count();
        let rest = &self.parts[points..];
        if rest.iter().skip(1).any(|p| !p.is_everything()) {
            return None;
        }
        let mut low = Vec::with_capacity(TREE_BYTES + 32);
        low.extend_from_slice(&self.index.id.to_be_bytes());
        self.parts[..points].iter().for_each(|p| low.extend_from_slice(&p.intervals[0].low));
        let mut high = low.clone();
        match rest.first() {
            None => high.extend_from_slice(&AFTER),
            Some(range) => {
                let [one] = range.intervals.as_slice() else { return None };
                low.extend_from_slice(&one.low);
                if !one.low_inclusive {
                    low.extend_from_slice(&AFTER);
                }
                high.extend_from_slice(&one.high);
                if one.high_inclusive {
                    high.extend_from_slice(&AFTER);
                }
            }
        }
        Some((low, high))
    }

    /// Parts with bounds, and those among them that are points: the more the better.
    pub fn tightness(&self) -> (usize, usize) {
        let points = self.parts.iter().take_while(|p| p.all_points()).count();
        let bounded = self.parts.iter().filter(|p| !p.is_everything()).count();
        (points, bounded)
    }

    /// True if no value can lie inside.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().any(|p| p.intervals.is_empty())
    }

    /// One scan for each combination of points in the leading parts, if there are at most `max`.
    pub fn explode(&self, leading: usize, max: usize) -> Option<Vec<IndexScan>> {
        let mut scans = vec![self.clone()];
        for part in 0..leading {
            let count = self.parts[part].intervals.len();
            if scans.len() * count > max {
                return None;
            }
            scans = scans.iter().flat_map(|scan| (0..count).map(|i| scan.narrowed(part, i))).collect();
        }
        Some(scans)
    }

    fn narrowed(&self, part: usize, interval: usize) -> IndexScan {
        let mut scan = self.clone();
        let bounds = &mut scan.parts[part];
        let at = if bounds.descending { bounds.source.len() - 1 - interval } else { interval };
        bounds.source = vec![bounds.source[at].clone()];
        bounds.intervals = vec![bounds.intervals[interval].clone()];
        scan
    }
}
