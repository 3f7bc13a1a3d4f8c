//! The first or last `n` in some order: what `$top`, `$bottomN`, `$minN` and their like share. Each value comes with a
//! key whose bytes are its place in the order.

use std::collections::BTreeMap;
use std::sync::Arc;

use espalier_value::{ArrayBuf, Code, Collation, Collator, DocBuf, Error, Result, Value, ValueRef};

use super::definition::{Given, Make};
use super::{Accumulator, AccumulatorSpec, limited};
use crate::expression::{Expression, Scope, sorted_output};
use crate::sort::Sort;

/// Which end is kept, and how it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub operator: &'static str,
    pub keep: Keep,
    pub show: Show,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Least,
    Greatest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    /// The one value, not in an array.
    One,
    Ascending,
    Descending,
}

#[derive(Debug)]
pub(super) struct Ranked {
    rule: Rule,
    count: usize,
    /// At most twice `count`: it is cut down when full, so that a value costs its share of a sort.
    entries: Vec<Entry>,
    bytes: usize,
    next_arrival: u64,
}

#[derive(Debug)]
struct Entry {
    key: Vec<u8>,
    /// Of equal keys the earlier is kept and comes first.
    arrival: u64,
    value: Value<'static>,
}

const SMALL: usize = 64;

impl Ranked {
    pub fn new(rule: Rule, count: usize) -> Ranked {
        Ranked { rule, count, entries: Vec::new(), bytes: 0, next_arrival: 0 }
    }

    pub fn insert(&mut self, key: Vec<u8>, value: Value<'static>) -> Result<()> {
        self.bytes += size_of::<Entry>() + key.len() + value.heap_bytes();
        self.entries.push(Entry { key, arrival: self.next_arrival, value });
        self.next_arrival += 1;
        if self.entries.len() >= self.count.saturating_mul(2).max(SMALL) {
            self.cut();
        }
        limited::check(self.rule.operator, self.bytes)
    }

    fn cut(&mut self) {
        match self.rule.keep {
            Keep::Least => self.entries.sort_by(|a, b| a.key.cmp(&b.key).then(a.arrival.cmp(&b.arrival))),
            Keep::Greatest => self.entries.sort_by(|a, b| b.key.cmp(&a.key).then(a.arrival.cmp(&b.arrival))),
        }
        self.entries.truncate(self.count);
        self.bytes = self.entries.iter().map(|e| size_of::<Entry>() + e.key.len() + e.value.heap_bytes()).sum();
    }

    pub fn partial(&self) -> Value<'static> {
        let mut array = ArrayBuf::new();
        let mut order: Vec<&Entry> = self.entries.iter().collect();
        order.sort_by_key(|e| e.arrival);
        for entry in order {
            array.push_doc(|doc| {
                doc.append("k", ValueRef::Binary(0, &entry.key)).append("v", entry.value.or_null());
            });
        }
        Value::array(array)
    }

    pub fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        let Some(array) = partial.as_array() else { return Ok(()) };
        array.iter().try_for_each(|entry| self.push_pair(entry))
    }

    /// Takes `{k: <key>, v: <value>}`.
    pub fn push_pair(&mut self, pair: ValueRef<'_>) -> Result<()> {
        let Some(doc) = pair.as_doc() else { return Ok(()) };
        match doc.get("k") {
            Some(ValueRef::Binary(_, key)) => self.insert(key.to_vec(), doc.get("v").map_or(Value::NULL, Value::own)),
            _ => Ok(()),
        }
    }

    pub fn finish(&mut self) -> Value<'static> {
        self.cut();
        match self.rule.show {
            Show::One => self.entries.first().map_or(Value::NULL, |e| e.value.clone()),
            show => {
                self.entries.sort_by(|a, b| a.key.cmp(&b.key).then(a.arrival.cmp(&b.arrival)));
                if show == Show::Descending {
                    self.entries.reverse();
                }
                Value::array(self.entries.iter().map(|e| e.value.or_null()).collect())
            }
        }
    }
}

/// `$top`, `$topN`, `$bottom`, `$bottomN`: pushed are pairs of sort key and output.
#[derive(Debug)]
pub(super) struct BySort(pub Ranked);

impl Accumulator for BySort {
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        value.map_or(Ok(()), |pair| self.0.push_pair(pair))
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        self.0.merge(partial)
    }

    fn partial(&self) -> Value<'static> {
        self.0.partial()
    }

    fn finish(&mut self) -> Value<'static> {
        self.0.finish()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.0.bytes
    }
}

/// `$minN` and `$maxN`: the value is its own key; null and missing do not count.
#[derive(Debug)]
pub(super) struct ByValue {
    rule: Rule,
    count: usize,
    /// By key, then by arrival.
    entries: BTreeMap<(Vec<u8>, u64), Value<'static>>,
    bytes: usize,
    next_arrival: u64,
    collation: Option<Arc<Collation>>,
}

impl ByValue {
    pub fn new(rule: Rule, given: Given<'_>) -> ByValue {
        let (count, collation) = (given.count, given.collation.clone());
        ByValue { rule, count, entries: BTreeMap::new(), bytes: 0, next_arrival: 0, collation }
    }

    /// Only what is beyond the worst that is held takes its place: of equal values those that are there stay.
    fn insert(&mut self, key: Vec<u8>, value: Value<'static>) -> Result<()> {
        if self.entries.len() >= self.count {
            let worst = match self.rule.keep {
                Keep::Least => self.entries.last_entry().filter(|worst| key < worst.key().0),
                Keep::Greatest => self.entries.first_entry().filter(|worst| key > worst.key().0),
            };
            let Some(worst) = worst else { return Ok(()) };
            let ((old, _), gone) = worst.remove_entry();
            self.bytes -= ByValue::entry_bytes(&old, &gone);
        }
        self.bytes += ByValue::entry_bytes(&key, &value);
        self.entries.insert((key, self.next_arrival), value);
        self.next_arrival += 1;
        limited::check(self.rule.operator, self.bytes)
    }

    fn entry_bytes(key: &[u8], value: &Value<'_>) -> usize {
        size_of::<((Vec<u8>, u64), Value<'static>)>() + key.len() + value.heap_bytes()
    }
}

impl Accumulator for ByValue {
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        match value.filter(|v| !v.is_nullish()) {
            Some(value) => self.insert(Collator::of(&self.collation).key(value), Value::own(value)),
            None => Ok(()),
        }
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        partial.as_array().map_or(Ok(()), |array| array.iter().try_for_each(|value| self.push(Some(value))))
    }

    /// In order of arrival, as if they came again.
    fn partial(&self) -> Value<'static> {
        let mut order: Vec<(u64, &Value<'static>)> = self.entries.iter().map(|((_, at), v)| (*at, v)).collect();
        order.sort_unstable_by_key(|(at, _)| *at);
        Value::array(order.into_iter().map(|(_, value)| value.or_null()).collect())
    }

    fn finish(&mut self) -> Value<'static> {
        let values = self.entries.values().map(Value::or_null);
        Value::array(if self.rule.keep == Keep::Least { values.collect() } else { values.rev().collect() })
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}

/// Parses `{sortBy, output}`, with `n` where the operator takes it.
pub(super) fn parse_sorted(
    name: &'static str,
    takes_n: bool,
    make: Make,
    argument: ValueRef<'_>,
    scope: &Scope,
) -> Result<AccumulatorSpec> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let ValueRef::Document(doc) = argument else {
        return refuse(5788001, format!("specification must be an object; found {name}: {argument}"));
    };
    let (mut count, mut output, mut sort) = (None, None, None);
    for elem in doc {
        match elem.name() {
            "n" if takes_n => count = Some(Expression::parse(elem.value(), scope)?),
            "output" => output = Some(elem.value()),
            "sortBy" => match elem.value() {
                ValueRef::Document(by) => sort = Some(Sort::parse(by, scope)?),
                _ => return refuse(10065, "invalid parameter: expected an object (sortBy)".into()),
            },
            other => return refuse(5788002, format!("Unknown argument to {name} '{other}'")),
        }
    }
    if takes_n && count.is_none() {
        return refuse(5788003, "Missing value for 'n'".into());
    }
    let Some(output) = output else { return refuse(5788004, "Missing value for 'output'".into()) };
    let Some(sort) = sort else { return refuse(5788005, "Missing value for 'sortBy'".into()) };
    // Arrays are allowed here, unlike in other accumulators.
    let expression = sorted_output(sort, output, scope)?;
    Ok(AccumulatorSpec { name, expression, count, make, collation: scope.collation().clone() })
}

/// Parses `{n, input}`.
pub(super) fn parse_n(
    name: &'static str,
    not_object: i32,
    make: Make,
    argument: ValueRef<'_>,
    scope: &Scope,
) -> Result<AccumulatorSpec> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let ValueRef::Document(doc) = argument else {
        return refuse(not_object, format!("specification must be an object; found {name}: {argument}"));
    };
    let (mut count, mut input) = (None, None);
    for elem in doc {
        match elem.name() {
            "n" => count = Some(Expression::parse(elem.value(), scope)?),
            "input" => input = Some(Expression::parse(elem.value(), scope)?),
            other => return refuse(5787901, format!("Unknown argument for 'n' operator: {other}")),
        }
    }
    let Some(count) = count else { return refuse(5787906, "Missing value for 'n'".into()) };
    let Some(expression) = input else { return refuse(5787907, "Missing value for 'input'".into()) };
    Ok(AccumulatorSpec { name, expression, count: Some(count), make, collation: scope.collation().clone() })
}

/// The document that [`BySort`] takes.
pub(crate) fn pair(key: &[u8], output: &Value<'_>) -> DocBuf {
    let mut doc = DocBuf::new();
    doc.append("k", ValueRef::Binary(0, key)).append("v", output.or_null());
    doc
}
