//! `$lastN`: the values of the last n documents, in the order they come; a missing value is null.

use std::collections::VecDeque;

use espalier_value::{ArrayBuf, Result, Value, ValueRef};

use super::definition::{Definition, Given, Parse};
use super::ranked::parse_n;
use super::{Accumulator, AccumulatorSpec, State, limited};
use crate::expression::Scope;

pub(super) static LAST_N: Definition = Definition {
    name: "$lastN",
    parse: Parse::Special(parse),
    doc: "The values of the last n documents, in the order they come.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<AccumulatorSpec> {
    let make = |given: Given<'_>| State::other(LastN { count: given.count, values: VecDeque::new(), bytes: 0 });
    parse_n(LAST_N.name, 5787801, make, argument, scope)
}

#[derive(Debug)]
struct LastN {
    count: usize,
    values: VecDeque<Value<'static>>,
    bytes: usize,
}

impl LastN {
    fn keep(&mut self, value: Option<ValueRef<'_>>) {
        let value = value.map_or(Value::NULL, Value::own);
        self.bytes += size_of::<Value<'static>>() + value.heap_bytes();
        self.values.push_back(value);
    }
}

impl Accumulator for LastN {
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        if self.values.len() >= self.count
            && let Some(old) = self.values.pop_front()
        {
            self.bytes -= size_of::<Value<'static>>() + old.heap_bytes();
        }
        self.keep(value);
        limited::check("$lastN", self.bytes)
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        partial.as_array().map_or(Ok(()), |array| array.iter().try_for_each(|value| self.push(Some(value))))
    }

    fn partial(&self) -> Value<'static> {
        Value::array(self.values.iter().map(Value::or_null).collect::<ArrayBuf>())
    }

    fn finish(&mut self) -> Value<'static> {
        self.partial()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
