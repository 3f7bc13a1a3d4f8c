//! Sliding windows whose values are kept in order: `$minN`, `$topN`, `$addToSet` and their like.

use std::collections::BTreeMap;
use std::sync::Arc;

use espalier_value::{ArrayBuf, Collation, Collator, Result, Value, ValueRef};

use super::runner::{Item, Sliding, Window};
use crate::context::Context;

/// What of a document is kept, and in which order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Values other than null, in their own order.
    Values,
    /// Any values that are there, in their own order.
    Set,
    /// Pairs of a sort key and an output.
    Pairs,
}

/// What is given out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    /// The least `n`, from below.
    Least(usize),
    /// The greatest `n`, from above.
    Greatest(usize),
    /// The greatest `n`, from below.
    GreatestAscending(usize),
    /// The least alone.
    First,
    /// The greatest alone.
    Last,
    /// One of each.
    Distinct,
}

pub(super) struct Ordered {
    kind: Kind,
    show: Show,
    collation: Option<Arc<Collation>>,
    /// By key, then by arrival.
    entries: BTreeMap<(Vec<u8>, u64), Value<'static>>,
    bytes: usize,
}

impl Ordered {
    pub fn boxed(context: &Context, kind: Kind, show: Show) -> Box<dyn Sliding> {
        let collation = context.collation.clone();
        Box::new(Ordered { kind, show, collation, entries: BTreeMap::new(), bytes: 0 })
    }

    /// Where an item belongs; `None` if it does not count.
    fn key(&self, item: &Item) -> Option<Vec<u8>> {
        let value = item.value()?;
        match self.kind {
            Kind::Values => (!value.is_nullish()).then(|| Collator::of(&self.collation).key(value)),
            Kind::Set => Some(Collator::of(&self.collation).key(value)),
            Kind::Pairs => match value.as_doc()?.get("k") {
                Some(ValueRef::Binary(_, key)) => Some(key.to_vec()),
                _ => None,
            },
        }
    }

    fn entry_bytes(key: &[u8], value: &Value<'_>) -> usize {
        size_of::<((Vec<u8>, u64), Value<'static>)>() + key.len() + value.heap_bytes()
    }

    /// Of equal keys the one that came first, from above.
    fn descending(&self) -> impl Iterator<Item = &Value<'static>> {
        self.entries.iter().rev().map(|(_, value)| value)
    }
}

impl Sliding for Ordered {
    fn add(&mut self, at: u64, item: &Item) -> Result<()> {
        let Some(key) = self.key(item) else { return Ok(()) };
        let value = match self.kind {
            Kind::Pairs => item.value().and_then(ValueRef::as_doc).and_then(|doc| doc.get("v")),
            _ => item.value(),
        };
        let value = value.map_or(Value::NULL, Value::own);
        self.bytes += Ordered::entry_bytes(&key, &value);
        self.entries.insert((key, at), value);
        Ok(())
    }

    fn remove(&mut self, at: u64, item: &Item) -> Result<()> {
        let Some(key) = self.key(item) else { return Ok(()) };
        if let Some(((key, _), value)) = self.entries.remove_entry(&(key, at)) {
            self.bytes -= Ordered::entry_bytes(&key, &value);
        }
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        let array = |values: &mut dyn Iterator<Item = &Value<'static>>| {
            Value::array(values.map(Value::or_null).collect::<ArrayBuf>())
        };
        Ok(match self.show {
            Show::Least(count) => array(&mut self.entries.values().take(count)),
            Show::Greatest(count) => array(&mut self.descending().take(count)),
            Show::GreatestAscending(count) => {
                array(&mut self.entries.values().skip(self.entries.len().saturating_sub(count)))
            }
            Show::First => self.entries.values().next().map_or(Value::NULL, Value::clone),
            Show::Last => self.descending().next().map_or(Value::NULL, Value::clone),
            Show::Distinct => {
                let mut last: Option<&[u8]> = None;
                let mut distinct = ArrayBuf::new();
                for ((key, _), value) in &self.entries {
                    if last != Some(key) {
                        distinct.push_value(value);
                    }
                    last = Some(key);
                }
                Value::array(distinct)
            }
        })
    }

    fn memory(&self) -> usize {
        self.bytes
    }
}
