//! What a predicate tells the planner: intervals of values that hold every match.

use espalier_value::{Value, ValueRef};

/// A range of values in BSON order.
#[derive(Clone, Debug)]
pub struct Interval {
    pub low: Value<'static>,
    pub low_inclusive: bool,
    pub high: Value<'static>,
    pub high_inclusive: bool,
}

impl Interval {
    pub fn point(value: ValueRef<'_>) -> Interval {
        let value = Value::own(value);
        Interval { low: value.clone(), low_inclusive: true, high: value, high_inclusive: true }
    }

    pub fn is_point(&self) -> bool {
        self.low_inclusive
            && self.high_inclusive
            && espalier_value::compare(self.low.or_null(), self.high.or_null()).is_eq()
    }

    pub fn everything() -> Interval {
        let (low, high) = (ValueRef::MinKey.into(), ValueRef::MaxKey.into());
        Interval { low, low_inclusive: true, high, high_inclusive: true }
    }
}

/// Sorted, disjoint intervals that hold every value the predicate accepts.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub intervals: Vec<Interval>,
    /// True if every value inside is accepted too, so that the document need not be looked at again
    /// (where the index tells the value apart: not for null, which also stands for missing).
    pub exact: bool,
}

impl Bounds {
    pub fn exact(intervals: Vec<Interval>) -> Bounds {
        Bounds { intervals, exact: true }
    }

    pub fn inexact(intervals: Vec<Interval>) -> Bounds {
        Bounds { intervals, exact: false }
    }
}
