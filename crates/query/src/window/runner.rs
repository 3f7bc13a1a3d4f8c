//! Going through one partition: inputs come in as documents are read, values go out in the same order, as soon as
//! enough is known. What a function holds is what its window holds, not the partition.

use std::collections::VecDeque;
use std::ops::Range;

use espalier_value::{Result, Value, ValueRef};

use super::bounds::{Bound, Bounds};

/// One function in one partition.
pub(crate) trait Runner: Send {
    /// Takes what the next document of the partition gives: where it stands in the order, and the input.
    fn push(&mut self, position: &Value<'_>, value: Value<'_>) -> Result<()>;

    /// Whether the next document's input is looked at. What would fail for one that is not does not.
    fn needs_input(&self) -> bool {
        true
    }

    /// There are no more documents in the partition.
    fn end(&mut self) -> Result<()>;

    /// Whether the value of the next document is known.
    fn is_ready(&self) -> bool;

    /// The value of the next document; missing sets nothing.
    fn next(&mut self) -> Result<Value<'static>>;

    /// Bytes held.
    fn memory(&self) -> usize;
}

/// What is kept of a document.
#[derive(Debug)]
pub(super) struct Item {
    /// Its value in the sort field; missing where the function does not ask.
    pub position: Value<'static>,
    pub value: Value<'static>,
}

impl Item {
    fn memory(&self) -> usize {
        size_of::<Item>() + self.position.heap_bytes() + self.value.heap_bytes()
    }

    pub fn value(&self) -> Option<ValueRef<'_>> {
        self.value.as_ref()
    }
}

/// A function of what is in a window, kept up to date as documents enter and leave.
pub(super) trait Sliding: Send {
    /// A document enters. `at` counts the documents of the partition.
    fn add(&mut self, at: u64, item: &Item) -> Result<()>;

    /// The oldest document leaves. Never called if the window has no lower bound.
    fn remove(&mut self, _at: u64, _item: &Item) -> Result<()> {
        Ok(())
    }

    fn value(&mut self, window: &Window<'_>) -> Result<Value<'static>>;

    /// Whether it looks at nothing but the first document of the window.
    fn is_of_first(&self) -> bool {
        false
    }

    /// Bytes held besides the items.
    fn memory(&self) -> usize {
        0
    }
}

/// The items in the window, oldest first. Empty if the window has no lower bound: then nothing is kept.
pub(super) struct Window<'a> {
    items: &'a VecDeque<Item>,
    range: Range<usize>,
    is_bounded: bool,
}

impl<'a> Window<'a> {
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'a Item> + ExactSizeIterator {
        self.items.range(self.range.clone())
    }

    /// Whether there is a lower bound.
    pub fn is_bounded(&self) -> bool {
        self.is_bounded
    }

    pub fn first(&self) -> Option<&'a Item> {
        self.iter().next()
    }

    pub fn last(&self) -> Option<&'a Item> {
        self.iter().next_back()
    }
}

/// Moves a window with a [`Sliding`] function over a partition.
pub(super) struct Windowed {
    bounds: Bounds,
    function: Box<dyn Sliding>,
    keeps_position: bool,
    /// Documents from `base` on.
    items: VecDeque<Item>,
    base: u64,
    item_bytes: usize,
    /// The document whose value comes next.
    at: u64,
    /// The function has taken in the documents `low..high`.
    low: u64,
    high: u64,
    ended: bool,
    /// The last value, as long as the window does not change.
    last: Option<Value<'static>>,
}

impl Windowed {
    pub fn new(bounds: Bounds, function: Box<dyn Sliding>, takes_position: bool) -> Windowed {
        let keeps_position = takes_position || bounds.reads_positions();
        Windowed {
            bounds,
            function,
            keeps_position,
            items: VecDeque::new(),
            base: 0,
            item_bytes: 0,
            at: 0,
            low: 0,
            high: 0,
            ended: false,
            last: None,
        }
    }

    fn arrived(&self) -> u64 {
        self.base + self.items.len() as u64
    }

    fn item(&self, at: u64) -> Option<&Item> {
        self.items.get(usize::try_from(at.checked_sub(self.base)?).ok()?)
    }

    /// How a document stands to a bound of the window of another.
    fn stands(&self, at: u64, bound: &Bound, of: &Item) -> Result<std::cmp::Ordering> {
        match self.item(at) {
            Some(item) => self.bounds.compare(item.position.or_null(), bound, of.position.or_null()),
            None => Ok(std::cmp::Ordering::Greater),
        }
    }

    /// The end of the window of the current document.
    fn target_high(&self) -> Result<u64> {
        let arrived = self.arrived();
        Ok(match &self.bounds.upper {
            Bound::Unbounded => arrived,
            Bound::Current => (self.at + 1).min(arrived),
            Bound::Documents(offset) => (self.at + 1).saturating_add_signed(*offset).min(arrived),
            bound => {
                let mut high = self.high;
                if let Some(current) = self.item(self.at) {
                    while high < arrived && self.stands(high, bound, current)?.is_le() {
                        high += 1;
                    }
                }
                high
            }
        })
    }

    fn target_low(&self) -> Result<u64> {
        let arrived = self.arrived();
        Ok(match &self.bounds.lower {
            Bound::Unbounded => 0,
            Bound::Current => self.at,
            Bound::Documents(offset) => self.at.saturating_add_signed(*offset).min(arrived),
            bound => {
                let mut low = self.low;
                if let Some(current) = self.item(self.at) {
                    while low < arrived && self.stands(low, bound, current)?.is_lt() {
                        low += 1;
                    }
                }
                low
            }
        })
    }

    fn add_until(&mut self, target: u64) -> Result<()> {
        while self.high < target {
            let index = (self.high - self.base) as usize;
            if let Some(item) = self.items.get(index) {
                self.function.add(self.high, item)?;
            }
            self.high += 1;
            self.last = None;
        }
        Ok(())
    }

    fn remove_until(&mut self, target: u64) -> Result<()> {
        while self.low < target {
            // What never entered need not leave.
            if self.low < self.high {
                let index = (self.low - self.base) as usize;
                if let Some(item) = self.items.get(index) {
                    self.function.remove(self.low, item)?;
                }
                self.last = None;
            }
            self.low += 1;
        }
        self.high = self.high.max(self.low);
        Ok(())
    }

    /// Forgets documents that nothing will look at again.
    fn forget(&mut self) {
        let lower = if self.bounds.is_left_unbounded() { self.high } else { self.low.min(self.high) };
        let keep_from = if self.bounds.reads_positions() { lower.min(self.at) } else { lower };
        while self.base < keep_from
            && let Some(item) = self.items.pop_front()
        {
            self.item_bytes -= item.memory();
            self.base += 1;
        }
    }
}

impl Runner for Windowed {
    fn push(&mut self, position: &Value<'_>, value: Value<'_>) -> Result<()> {
        if self.bounds.is_range {
            self.bounds.check_position(position)?;
        }
        let position = if self.keeps_position { position.clone().into_owned() } else { Value::Missing };
        let item = Item { position, value: value.into_owned() };
        self.item_bytes += item.memory();
        self.items.push_back(item);
        // Without an upper bound it is in every window from the start.
        if matches!(self.bounds.upper, Bound::Unbounded) {
            self.add_until(self.arrived())?;
            self.forget();
        }
        Ok(())
    }

    fn needs_input(&self) -> bool {
        self.arrived() == 0 || !self.bounds.is_left_unbounded() || !self.function.is_of_first()
    }

    fn end(&mut self) -> Result<()> {
        self.ended = true;
        Ok(())
    }

    fn is_ready(&self) -> bool {
        let arrived = self.arrived();
        self.ended
            || match &self.bounds.upper {
                Bound::Unbounded => false,
                Bound::Current => arrived > self.at,
                Bound::Documents(offset) => arrived > self.at && arrived > self.at.saturating_add_signed(*offset),
                bound => match (self.item(self.at), self.items.back()) {
                    (Some(current), Some(_)) => self.stands(arrived - 1, bound, current).is_ok_and(|o| o.is_gt()),
                    _ => false,
                },
            }
    }

    fn next(&mut self) -> Result<Value<'static>> {
        let (low, high) = (self.target_low()?, self.target_high()?);
        // In this order, as MongoDB does it: it shows in the last digit of sums.
        if low <= self.high {
            self.add_until(high)?;
            self.remove_until(low)?;
        } else {
            // What lies between the old and the new window never enters.
            self.remove_until(low)?;
            self.add_until(high)?;
        }
        self.forget();
        self.at += 1;
        if let Some(last) = &self.last {
            return Ok(last.clone());
        }
        let range = if self.bounds.is_left_unbounded() {
            0..0
        } else {
            let index = |at: u64| (at.saturating_sub(self.base) as usize).min(self.items.len());
            index(self.low)..index(self.high)
        };
        let value =
            self.function.value(&Window { items: &self.items, range, is_bounded: !self.bounds.is_left_unbounded() })?;
        self.last = Some(value.clone());
        Ok(value)
    }

    fn memory(&self) -> usize {
        self.item_bytes + self.function.memory() + self.last.as_ref().map_or(0, Value::heap_bytes)
    }
}
