//! What a predicate tells the planner: intervals of values that hold every match, and the algebra on them.
//!
//! Bounds speak of index keys, as MongoDB writes them: one key for each element of an array, `undefined` for an empty
//! array, null where the path leads to nothing. A document that matches has at least one key inside the bounds.

use std::cmp::Ordering;

use espalier_value::{Collator, Path, Value, ValueRef, compare};

use super::{Node, Reach, brackets};

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

    pub fn new(low: Value<'static>, low_inclusive: bool, high: Value<'static>, high_inclusive: bool) -> Interval {
        Interval { low, low_inclusive, high, high_inclusive }
    }

    pub fn contains(&self, value: ValueRef<'_>) -> bool {
        let low = compare(value, self.low.or_null());
        let high = compare(value, self.high.or_null());
        (low.is_gt() || low.is_eq() && self.low_inclusive) && (high.is_lt() || high.is_eq() && self.high_inclusive)
    }

    /// True if no value can lie inside.
    pub fn is_empty(&self) -> bool {
        match compare(self.low.or_null(), self.high.or_null()) {
            // Between undefined and null there is nothing.
            Ordering::Less => {
                let edges = (self.low.or_null(), self.high.or_null());
                matches!(edges, (ValueRef::Undefined, ValueRef::Null)) && !self.low_inclusive && !self.high_inclusive
            }
            Ordering::Equal => !(self.low_inclusive && self.high_inclusive),
            Ordering::Greater => true,
        }
    }

    pub fn is_everything(&self) -> bool {
        self.low_inclusive
            && self.high_inclusive
            && matches!(self.low.or_null(), ValueRef::MinKey)
            && matches!(self.high.or_null(), ValueRef::MaxKey)
    }

    fn low_edge(&self) -> Edge<'_> {
        Edge { value: self.low.or_null(), after: !self.low_inclusive }
    }

    fn high_edge(&self) -> Edge<'_> {
        Edge { value: self.high.or_null(), after: self.high_inclusive }
    }
}

/// A cut between values: just before or just after one. An interval is what lies between two cuts, so that
/// inclusiveness needs no cases of its own.
#[derive(Clone, Copy)]
struct Edge<'a> {
    value: ValueRef<'a>,
    after: bool,
}

impl Edge<'_> {
    fn cmp(self, other: Edge<'_>) -> Ordering {
        compare(self.value, other.value).then(self.after.cmp(&other.after))
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
    /// Sorts, merges and drops empty intervals.
    pub fn exact(intervals: Vec<Interval>) -> Bounds {
        Bounds { intervals: tidy(intervals), exact: true }
    }

    pub fn inexact(intervals: Vec<Interval>) -> Bounds {
        Bounds { intervals: tidy(intervals), exact: false }
    }

    /// Any value, each to be looked at.
    pub fn everything() -> Bounds {
        Bounds::inexact(vec![Interval::everything()])
    }

    /// No value at all.
    pub fn nothing() -> Bounds {
        Bounds::exact(Vec::new())
    }

    pub fn is_everything(&self) -> bool {
        matches!(&self.intervals[..], [one] if one.is_everything())
    }

    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// True if it is a list of single values.
    pub fn is_points(&self) -> bool {
        self.intervals.iter().all(Interval::is_point)
    }

    pub fn contains(&self, value: ValueRef<'_>) -> bool {
        self.intervals.iter().any(|interval| interval.contains(value))
    }

    /// Values in both: two conditions on one value. (On a multikey index two conditions may be met by two elements
    /// of one array, so there the planner may use one of them, not both.)
    pub fn intersect(&self, other: &Bounds) -> Bounds {
        let (mut left, mut right) = (self.intervals.iter().peekable(), other.intervals.iter().peekable());
        let mut intervals = Vec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let low = if a.low_edge().cmp(b.low_edge()).is_ge() { a } else { b };
            let a_ends_first = a.high_edge().cmp(b.high_edge()).is_le();
            let high = if a_ends_first { a } else { b };
            if low.low_edge().cmp(high.high_edge()).is_lt() {
                let (from, to) = (low.low.clone(), high.high.clone());
                intervals.push(Interval::new(from, low.low_inclusive, to, high.high_inclusive));
            }
            if a_ends_first {
                left.next();
            } else {
                right.next();
            }
        }
        Bounds { intervals, exact: self.exact && other.exact }
    }

    /// Values in either.
    pub fn union(&self, other: &Bounds) -> Bounds {
        let intervals = self.intervals.iter().chain(&other.intervals).cloned().collect();
        Bounds { intervals: tidy(intervals), exact: self.exact && other.exact }
    }

    /// Values in none of the intervals. A right answer to "not" only where the bounds are exact.
    pub fn complement(&self) -> Bounds {
        let mut intervals = Vec::with_capacity(self.intervals.len() + 1);
        let (mut low, mut low_inclusive) = (Value::Ref(ValueRef::MinKey), true);
        for interval in &self.intervals {
            let gap = Interval::new(low, low_inclusive, interval.low.clone(), !interval.low_inclusive);
            if !gap.is_empty() {
                intervals.push(gap);
            }
            (low, low_inclusive) = (interval.high.clone(), !interval.high_inclusive);
        }
        let last = Interval::new(low, low_inclusive, ValueRef::MaxKey.into(), true);
        if !last.is_empty() {
            intervals.push(last);
        }
        Bounds { intervals, exact: self.exact }
    }

    /// The bounds of the negated predicate, of which `self` are the bounds. Never exact: an array with one element
    /// outside may have another inside.
    pub(crate) fn negated(&self) -> Bounds {
        if self.exact { Bounds { exact: false, ..self.complement() } } else { Bounds::everything() }
    }

    /// The bounds of one value. Null also stands for missing; an array is found by its first element.
    pub(crate) fn of_equality(value: ValueRef<'_>) -> Bounds {
        match value {
            ValueRef::Null | ValueRef::Undefined => {
                Bounds::inexact(vec![Interval::point(ValueRef::Undefined), Interval::point(ValueRef::Null)])
            }
            ValueRef::Array(array) => {
                let first = array.iter().next().unwrap_or(ValueRef::Undefined);
                let mut intervals = vec![Interval::point(value)];
                match first {
                    // An array inside an array is one key, whole.
                    ValueRef::Null => intervals.extend(Bounds::of_equality(first).intervals),
                    _ => intervals.push(Interval::point(first)),
                }
                Bounds::inexact(intervals)
            }
            _ => Bounds::exact(vec![Interval::point(value)]),
        }
    }

    /// The bounds of being equal to none of these. An array in the list excludes no key, since an array is found by
    /// its elements; null excludes its keys only where no key is an array's element: `{a: [1]}` has a null key for
    /// `a.b` though nothing there equals null.
    pub(crate) fn of_none<'v>(values: impl Iterator<Item = ValueRef<'v>>, multikey: bool) -> Bounds {
        let mut out = Vec::new();
        for value in values {
            match value {
                ValueRef::Array(_) => {}
                ValueRef::Null | ValueRef::Undefined if multikey => {}
                _ => out.extend(Bounds::of_equality(value).intervals),
            }
        }
        Bounds { exact: false, ..Bounds::exact(out).complement() }
    }

    /// As [`Bounds::of_equality`], where no key is an array's element: null is null or missing and nothing else.
    pub(crate) fn of_single(value: ValueRef<'_>) -> Option<Bounds> {
        let bounds = Bounds::of_equality(value);
        match value {
            ValueRef::Null | ValueRef::Undefined => Some(Bounds { exact: true, ..bounds }),
            _ => Some(bounds).filter(|bounds| bounds.exact),
        }
    }

    /// Every value of a rank.
    pub fn of_rank(rank: u8) -> Bounds {
        Bounds::exact(vec![brackets::interval(rank)])
    }
}

/// What an index on one path could answer to a node, and the path; `None` for a node about several paths or none.
/// An `$and` is left to the planner, which knows whether two conditions may be met by two elements of one array.
pub fn of<'n>(node: &'n Node, multikey: bool, index: Collator<'_>) -> Option<(&'n Path, Bounds)> {
    match node {
        Node::Leaf(leaf) => Some((&leaf.path, leaf.predicate.bounds(index)?)),
        Node::Or(nodes) => union(nodes, |node| of(node, multikey, index)),
        Node::Not(node) => negation(node, multikey, index),
        Node::And(_) | Node::Nor(_) | Node::Expr(_) | Node::Whole(_) => None,
    }
}

fn negation<'n>(node: &'n Node, multikey: bool, index: Collator<'_>) -> Option<(&'n Path, Bounds)> {
    match node {
        Node::Leaf(leaf) => Some((&leaf.path, leaf.predicate.negated_bounds(multikey, index)?)),
        // Not both is not the one or not the other.
        Node::And(nodes) => union(nodes, |node| negation(node, multikey, index)),
        Node::Not(node) => of(node, multikey, index).map(|(path, bounds)| (path, Bounds { exact: false, ..bounds })),
        Node::Or(_) | Node::Nor(_) | Node::Expr(_) | Node::Whole(_) => None,
    }
}

fn union<'n>(
    nodes: &'n [Node],
    bounds_of: impl Fn(&'n Node) -> Option<(&'n Path, Bounds)>,
) -> Option<(&'n Path, Bounds)> {
    let (first, rest) = nodes.split_first()?;
    let (path, mut all) = bounds_of(first)?;
    for node in rest {
        let (other, bounds) = bounds_of(node)?;
        if other != path {
            return None;
        }
        all = all.union(&bounds);
    }
    Some((path, all))
}

/// The bounds of conditions that one array element meets all, as it is.
pub(crate) fn of_element(node: &Node, index: Collator<'_>) -> Option<Bounds> {
    match node {
        Node::Leaf(leaf) if leaf.predicate.reach() == Reach::Elements => leaf.predicate.bounds(index),
        Node::And(nodes) => {
            nodes.iter().filter_map(|node| of_element(node, index)).reduce(|all, next| all.intersect(&next))
        }
        // The key of an element is the element itself, but an exact answer inside would be needed to turn it round.
        Node::Not(inner) => match &**inner {
            Node::Leaf(leaf) if leaf.predicate.reach() == Reach::Elements => leaf.predicate.negated_bounds(true, index),
            _ => None,
        },
        _ => None,
    }
}

/// What an index on one path that holds no element of an array says exactly about a node.
pub fn exactly(node: &Node, index: Collator<'_>) -> Option<Bounds> {
    fn paths<'n>(node: &'n Node, found: &mut Vec<&'n Path>) {
        match node {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().for_each(|node| paths(node, found)),
            Node::Not(node) => paths(node, found),
            Node::Leaf(leaf) => found.push(&leaf.path),
            Node::Expr(_) | Node::Whole(_) => {}
        }
    }
    let mut found = Vec::new();
    paths(node, &mut found);
    let one = found.windows(2).all(|pair| pair[0] == pair[1]);
    // A number may be the place of an element.
    let numbered = found.first().is_none_or(|path| path.parts().iter().any(|part| part.index().is_some()));
    if one && !numbered { exact(node, index) } else { None }
}

fn exact(node: &Node, index: Collator<'_>) -> Option<Bounds> {
    match node {
        Node::Leaf(leaf) if leaf.predicate.elem_match().is_none() => leaf.predicate.exact_bounds(index),
        Node::Not(node) => exact(node, index).map(|bounds| bounds.complement()),
        Node::And(nodes) => all(nodes, index, Bounds::intersect),
        Node::Or(nodes) => all(nodes, index, Bounds::union),
        Node::Nor(nodes) => all(nodes, index, Bounds::union).map(|bounds| bounds.complement()),
        Node::Leaf(_) | Node::Expr(_) | Node::Whole(_) => None,
    }
}

fn all(nodes: &[Node], index: Collator<'_>, both: fn(&Bounds, &Bounds) -> Bounds) -> Option<Bounds> {
    let (first, rest) = nodes.split_first()?;
    rest.iter().try_fold(exact(first, index)?, |bounds, node| Some(both(&bounds, &exact(node, index)?)))
}

/// Whether any condition inside compares strings by the filter's collation.
pub fn is_collated(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(is_collated),
        Node::Not(node) => is_collated(node),
        Node::Leaf(leaf) => leaf.predicate.is_collated(),
        Node::Expr(_) | Node::Whole(_) => false,
    }
}

fn tidy(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.retain(|interval| !interval.is_empty());
    intervals.sort_by(|a, b| a.low_edge().cmp(b.low_edge()));
    let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
    for next in intervals {
        match merged.last_mut() {
            // Touching intervals become one: [1, 5) and [5, 9].
            Some(last) if last.high_edge().cmp(next.low_edge()).is_ge() => {
                if next.high_edge().cmp(last.high_edge()).is_gt() {
                    (last.high, last.high_inclusive) = (next.high, next.high_inclusive);
                }
            }
            _ => merged.push(next),
        }
    }
    merged
}
