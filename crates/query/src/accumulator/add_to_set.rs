//! `$addToSet`: an array of the distinct values, of equal ones the first; missing ones are left out.

use std::collections::HashSet;
use std::sync::Arc;

use espalier_value::{ArrayBuf, Collation, Collator, Result, Value, ValueRef};

use super::definition::{Definition, Parse};
use super::{Accumulator, State, limited};

pub(super) static ADD_TO_SET: Definition = Definition {
    name: "$addToSet",
    parse: Parse::Unary(|given| State::other(AddToSet { collation: given.collation.clone(), ..AddToSet::default() })),
    doc: "An array of the distinct values.",
};

#[derive(Debug, Default)]
struct AddToSet {
    seen: HashSet<Box<[u8]>>,
    array: ArrayBuf,
    key_bytes: usize,
    /// Reused, so that a value that is there already costs no allocation.
    scratch: Vec<u8>,
    collation: Option<Arc<Collation>>,
}

impl Accumulator for AddToSet {
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        self.scratch.clear();
        Collator::of(&self.collation).encode(&mut self.scratch, value);
        if self.seen.contains(&self.scratch[..]) {
            return Ok(());
        }
        self.key_bytes += self.scratch.len() + size_of::<Box<[u8]>>();
        self.seen.insert(self.scratch[..].into());
        self.array.push(value);
        limited::check("$addToSet", self.array.len_bytes())
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        partial.as_array().map_or(Ok(()), |array| array.iter().try_for_each(|value| self.push(Some(value))))
    }

    fn partial(&self) -> Value<'static> {
        Value::array(self.array.clone())
    }

    fn finish(&mut self) -> Value<'static> {
        self.seen.clear();
        Value::array(std::mem::take(&mut self.array))
    }

    fn peek(&mut self) -> Value<'static> {
        self.partial()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.array.len_bytes() + self.key_bytes
    }
}
