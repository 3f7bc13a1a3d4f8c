//! `$min` and `$max` of a sliding window: only values that can still become the result are kept, so that each costs
//! the same however wide the window is.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use espalier_value::{Collation, Collator, Result, Value};

use super::runner::{Item, Sliding, Window};
use super::{Function, Given};

pub(super) fn parse(
    given: &Given<'_>,
    is_better: fn(Ordering) -> bool,
    sliding: fn(Option<Arc<Collation>>) -> Extreme,
) -> Result<Function> {
    let bounds = given.bounds()?;
    let grows = bounds.is_left_unbounded();
    let collation = given.scope.collation().clone();
    let make = move || -> Box<dyn Sliding> {
        let collation = collation.clone();
        if grows { Box::new(Best { is_better, best: Value::NULL, collation }) } else { Box::new(sliding(collation)) }
    };
    Ok(given.windowed(given.expression(given.argument)?, bounds, false, make))
}

/// Of a window that only grows; of equal values the first.
struct Best {
    is_better: fn(Ordering) -> bool,
    best: Value<'static>,
    collation: Option<Arc<Collation>>,
}

impl Sliding for Best {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        let collator = Collator::of(&self.collation);
        if !item.value.is_nullish()
            && (self.best.is_nullish() || (self.is_better)(collator.compare(item.value.or_null(), self.best.or_null())))
        {
            self.best = item.value.clone();
        }
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        Ok(self.best.clone())
    }

    fn memory(&self) -> usize {
        self.best.heap_bytes()
    }
}

pub(super) struct Extreme {
    /// Whether a value makes an older one superfluous, by how it compares with it.
    supersedes: fn(Ordering) -> bool,
    /// Candidates, best first, with the document they come from.
    candidates: VecDeque<(u64, Value<'static>)>,
    bytes: usize,
    collation: Option<Arc<Collation>>,
}

impl Extreme {
    /// Of equal values the first counts.
    pub fn min(collation: Option<Arc<Collation>>) -> Extreme {
        Extreme { supersedes: Ordering::is_lt, candidates: VecDeque::new(), bytes: 0, collation }
    }

    /// Of equal values the last counts.
    pub fn max(collation: Option<Arc<Collation>>) -> Extreme {
        Extreme { supersedes: Ordering::is_ge, candidates: VecDeque::new(), bytes: 0, collation }
    }
}

impl Sliding for Extreme {
    fn add(&mut self, at: u64, item: &Item) -> Result<()> {
        let Some(value) = item.value().filter(|value| !value.is_nullish()) else { return Ok(()) };
        let collator = Collator::of(&self.collation);
        while let Some((_, last)) = self.candidates.back()
            && last.as_ref().is_some_and(|last| (self.supersedes)(collator.compare(value, last)))
        {
            if let Some((_, last)) = self.candidates.pop_back() {
                self.bytes -= last.heap_bytes();
            }
        }
        let value = Value::own(value);
        self.bytes += value.heap_bytes();
        self.candidates.push_back((at, value));
        Ok(())
    }

    fn remove(&mut self, at: u64, _item: &Item) -> Result<()> {
        if self.candidates.front().is_some_and(|(first, _)| *first == at)
            && let Some((_, value)) = self.candidates.pop_front()
        {
            self.bytes -= value.heap_bytes();
        }
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        Ok(self.candidates.front().map_or(Value::NULL, |(_, value)| value.clone()))
    }

    fn memory(&self) -> usize {
        self.candidates.len() * size_of::<(u64, Value<'static>)>() + self.bytes
    }
}
